// Finds paths that a manifest lists more than once, and those that name the root themselves, so
// that it stands before them twice.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "stages/manifest.h"

namespace melflow {

class DoublePaths {
 public:
  /// Adds the path of the next file, as BelowRoot gives it, and the number of its line in the
  /// manifest.
  void add(std::string_view path, int line);

  /// Two files with the same path, the first one and a later one, and their lines.
  struct Pair {
    std::size_t first = 0, second = 0;
    int first_line = 0, second_line = 0;
  };
  /// All such pairs, in the order of `second`.
  [[nodiscard]] std::vector<Pair> find() const;

 private:
  struct Line {
    std::uint64_t path = 0;  // the path's hash, so that the paths are not stored a second time
    int line = 0;
  };
  std::vector<Line> lines_;
};

/// What to say of a list of files whose first file is a URL, or not below the root: that it is
/// where its path leads without the root, or else, where the last one is missing, too, where it was
/// looked for; "" else. `list`: the file in which the paths stand.
std::string doubled_root(const std::string& list, const Manifest& manifest);

}  // namespace melflow
