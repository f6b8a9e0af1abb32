#include "stages/corpus/double_paths.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <numeric>

namespace melflow {

void DoublePaths::add(std::string_view path, int line) {
  lines_.push_back({XXH3_64bits(path.data(), path.size()), line});
}

std::vector<DoublePaths::Pair> DoublePaths::find() const {
  std::vector<std::size_t> order(lines_.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [this](std::size_t a, std::size_t b) {
    return lines_[a].path < lines_[b].path;
  });
  std::vector<Pair> out;
  for (std::size_t at = 0, first = 0; at < order.size(); ++at) {
    const Line& line = lines_[order[at]];
    const Line& of_first = lines_[order[first]];
    if (line.path != of_first.path)
      first = at;
    else if (at > first)
      out.push_back({order[first], order[at], of_first.line, line.line});
  }
  std::sort(out.begin(), out.end(),
            [](const Pair& a, const Pair& b) { return a.second < b.second; });
  return out;
}

}  // namespace melflow
