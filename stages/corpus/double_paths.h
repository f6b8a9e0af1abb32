// Paths that stand in a manifest more than once.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace melflow {

class DoublePaths {
 public:
  /// The path of the next file and the line it stands in.
  void add(std::string_view path, int line);

  /// Two files of one path, the first that has it and a later one, and their lines.
  struct Pair {
    std::size_t first = 0, second = 0;
    int first_line = 0, second_line = 0;
  };
  /// In the order of the later ones.
  [[nodiscard]] std::vector<Pair> find() const;

 private:
  struct Line {
    std::uint64_t path = 0;  // its hash: a million lines are not kept twice
    int line = 0;
  };
  std::vector<Line> lines_;
};

}  // namespace melflow
