#include "stages/corpus/not_taken.h"

#include <algorithm>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "pipeline/base/text.h"

namespace melflow {
namespace {

constexpr std::size_t kMostEndings = 100, kMostShown = 8;
constexpr std::size_t kLongestEnding = 10;  // longer ones are no kind of file [bytes]

std::string ending_of(std::string_view name) {
  const std::size_t dot = name.rfind('.');
  if (dot == name.npos || dot == 0 || name.size() - dot > kLongestEnding) return NotTaken::kOther;
  return std::string(name.substr(dot));
}

}  // namespace

void NotTaken::add(std::string_view name) {
  const std::string ending = ending_of(name);
  const bool is_known = counts_.size() < kMostEndings || counts_.contains(ending);
  ++counts_[is_known ? ending : kOther];
}

std::string NotTaken::text() const {
  std::vector<std::pair<std::string, std::size_t>> all(counts_.begin(), counts_.end());
  std::stable_sort(all.begin(), all.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  std::string out;
  const auto name = [&out](std::size_t count, std::string_view what) {
    if (count > 0) out += fmt::format("{}{} {}", out.empty() ? "" : ", ", count, what);
  };
  std::size_t others = 0, shown = 0, hidden = 0, linked = 0;
  for (const auto& [ending, count] : all) {
    if (ending == kHidden) {
      hidden = count;
    } else if (ending == kLinkedFolder) {
      linked = count;
    } else if (ending == kOther || shown == kMostShown) {
      others += count;
    } else {
      name(count, excerpt(ending));
      ++shown;
    }
  }
  name(others, kOther);
  name(hidden, fmt::format("{} (names that begin with '.')", kHidden));
  name(linked, fmt::format("{}{} (searched with follow_links: true)", kLinkedFolder,
                           linked == 1 ? "" : "s"));
  return out;
}

}  // namespace melflow
