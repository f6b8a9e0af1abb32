#include "stages/corpus/not_taken.h"

#include <algorithm>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "pipeline/text.h"

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
  std::size_t others = 0, shown = 0, linked = 0;
  for (const auto& [ending, count] : all) {
    if (ending == kLinkedFolder) {
      linked = count;
      continue;
    }
    if (ending == kOther || shown == kMostShown) {
      others += count;
      continue;
    }
    out += fmt::format("{}{} {}", out.empty() ? "" : ", ", count, excerpt(ending));
    ++shown;
  }
  if (others > 0) out += fmt::format("{}{} {}", out.empty() ? "" : ", ", others, kOther);
  if (linked > 0)
    out += fmt::format("{}{} {}{} (searched with follow_links: true)", out.empty() ? "" : ", ",
                       linked, kLinkedFolder, linked == 1 ? "" : "s");
  return out;
}

}  // namespace melflow
