// Finds paths that a manifest lists more than once, and paths that contain the root themselves, so
// that it would be prepended twice.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "stages/manifest.h"

namespace melflow {

class DoublePaths {
 public:
  /// Adds the path of the next file, as BelowRoot returns it, and its line number in the manifest,
  /// 0 where there are several lists.
  void add(std::string_view path, int line);

  /// Two files with the same path, the first one and a later one, and their lines.
  struct Pair {
    std::size_t first = 0, second = 0;
    int first_line = 0, second_line = 0;
  };
  /// Returns all such pairs, in the order of `second`.
  [[nodiscard]] std::vector<Pair> find() const;

 private:
  struct Line {
    std::uint64_t path = 0;  // the path's hash, so that the paths are not stored a second time
    int line = 0;
  };
  std::vector<Line> lines_;
};

/// Returns advice on a list in which paths are URLs, "" otherwise. `list`: the file that contains
/// the paths.
std::string urls_of_list(const std::string& list, const Manifest& manifest);
/// Returns advice on a list of files whose first path does not exist below the root: that the path
/// leads to the file without the root, or, where the last one is missing too, where it was looked
/// for. Returns "" otherwise.
std::string doubled_root(const std::string& list, const Manifest& manifest);

}  // namespace melflow
