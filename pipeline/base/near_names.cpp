#include "pipeline/base/near_names.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "pipeline/base/problem.h"

namespace melflow {

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before(b.size() + 1), last(b.size() + 1), now(b.size() + 1);
  std::iota(last.begin(), last.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    now[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t cost = a[i - 1] == b[j - 1] ? 0 : 1;
      now[j] = std::min({last[j] + 1, now[j - 1] + 1, last[j - 1] + cost});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        now[j] = std::min(now[j], before[j - 2] + 1);
    }
    before.swap(last);
    last.swap(now);
  }
  return last[b.size()];
}

std::string names_text(std::string_view word, const std::vector<std::string>& names,
                       std::string_view shown_by) {
  constexpr std::size_t kMost = 20, kNearest = 3;
  if (names.size() <= kMost) return fmt::format("{}", fmt::join(names, ", "));
  std::vector<std::pair<std::size_t, const std::string*>> far;
  for (const std::string& c : names) {
    const std::size_t d = word.empty() || word.size() > kLongestMisspelt ? 0
                          : c.starts_with(word)                          ? 1
                                                                         : edit_distance(word, c);
    far.emplace_back(d, &c);
  }
  std::stable_sort(far.begin(), far.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::string out;
  for (std::size_t i = 0; i < kNearest; ++i) out += (i == 0 ? "" : ", ") + *far[i].second;
  out += fmt::format(" and {} more", names.size() - kNearest);
  return shown_by.empty() ? out : fmt::format("{} ({} shows all)", out, shown_by);
}

std::string not_one_of(std::string_view word, const std::vector<std::string>& names,
                       std::string_view shown_by) {
  return fmt::format("is not one of {}{}", names_text(word, names, shown_by),
                     did_you_mean(word, names));
}

}  // namespace melflow
