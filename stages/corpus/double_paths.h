// Finds paths that a manifest lists more than once.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace melflow {

class DoublePaths {
 public:
  /// Adds the path of the next file, as BelowRoot gives it, and the number of its line in the manifest.
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

}  // namespace melflow
