#include "pipeline/base/problem.h"

#include <algorithm>
#include <cctype>
#include <numeric>
#include <tuple>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "pipeline/base/sentences.h"
#include "pipeline/base/text.h"

namespace melflow {

std::string Problem::str() const {
  const std::string place = mark.str();
  return place.empty() ? message : place + ": " + message;
}

void Problems::add(Mark mark, std::string message) {
  message = shortened(in_sentences(message), kLongestMessage);
  list_.push_back({std::move(mark), std::move(message)});
  if (list_.size() < kMost) return;
  Problems all = *this;
  all.list_.push_back({list_.back().mark, "there are too many problems; the check stopped here"});
  throw ConfigError(std::move(all));
}

std::vector<Problem> Problems::sorted() const {
  std::vector<Problem> out = list_;
  const auto place = [](const Problem& p) {
    const bool has_line = p.mark.file != nullptr && p.mark.line > 0;
    return std::tuple(has_line ? *p.mark.file : std::string_view(), p.mark.line, p.mark.column);
  };
  std::stable_sort(out.begin(), out.end(),
                   [&place](const Problem& a, const Problem& b) { return place(a) < place(b); });
  return out;
}

std::string Problems::str() const {
  std::string out;
  for (const Problem& p : sorted()) {
    if (!out.empty()) out += '\n';
    out += p.str();
  }
  return out;
}

namespace {
Problems one(std::string message, Mark mark) {
  Problems p;
  p.add(std::move(mark), std::move(message));
  return p;
}

// Edit distance with transpositions of neighbours (optimal string alignment), for typing errors.
std::size_t distance(std::string_view a, std::string_view b) {
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

bool are_same_letters(std::string_view a, std::string_view b) {
  return a.size() == b.size() && std::is_permutation(a.begin(), a.end(), b.begin());
}

std::string in_lower_case(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return out;
}

// Returns the only candidate that begins with the word; "" if there is none or several.
std::string begun(std::string_view word, const std::vector<std::string>& candidates) {
  constexpr std::size_t kShortest = 3;  // [bytes]
  std::string best;
  if (word.size() < kShortest) return best;
  for (const std::string& c : candidates) {
    if (!c.starts_with(word)) continue;
    if (!best.empty()) return {};
    best = c;
  }
  return best;
}

constexpr std::size_t kLongest = 100;  // of a word that may be misspelt [bytes]

// Returns "" if none is near enough or begun. On a tie prefers the same letters: from for "form".
std::string nearest(std::string_view word, const std::vector<std::string>& candidates) {
  std::string best;
  if (word.size() > kLongest) return best;
  const std::string lower = in_lower_case(word);
  std::size_t best_distance = std::max<std::size_t>(1, word.size() / 3) + 1;
  for (const std::string& c : candidates) {
    if (c.size() > word.size() + best_distance) continue;
    const std::size_t d = c != word && in_lower_case(c) == lower ? 1 : distance(word, c);
    if (d < best_distance || (d == best_distance && !best.empty() && are_same_letters(word, c) &&
                              !are_same_letters(word, best))) {
      best_distance = d;
      best = c;
    }
  }
  return best.empty() ? begun(word, candidates) : best;
}

}  // namespace

ConfigError::ConfigError(std::string message, Mark mark)
    : ConfigError(one(std::move(message), std::move(mark))) {}

std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates) {
  const std::string best = nearest(word, candidates);
  return best.empty() ? "" : did_you_mean(best);
}

std::string names_text(std::string_view word, const std::vector<std::string>& candidates,
                       std::string_view shown_by) {
  constexpr std::size_t kMost = 20, kNearest = 3;
  if (candidates.size() <= kMost) return fmt::format("{}", fmt::join(candidates, ", "));
  std::vector<std::pair<std::size_t, const std::string*>> far;
  for (const std::string& c : candidates) {
    const std::size_t d = word.empty() || word.size() > kLongest ? 0
                          : c.starts_with(word)                  ? 1
                                                                 : distance(word, c);
    far.emplace_back(d, &c);
  }
  std::stable_sort(far.begin(), far.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::string out;
  for (std::size_t i = 0; i < kNearest; ++i) out += (i == 0 ? "" : ", ") + *far[i].second;
  out += fmt::format(" and {} more", candidates.size() - kNearest);
  return shown_by.empty() ? out : fmt::format("{} ({} shows all)", out, shown_by);
}

std::string not_one_of(std::string_view word, const std::vector<std::string>& candidates,
                       std::string_view shown_by) {
  return fmt::format("is not one of {}{}", names_text(word, candidates, shown_by),
                     did_you_mean(word, candidates));
}

}  // namespace melflow
