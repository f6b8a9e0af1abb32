#include "pipeline/base/problem.h"

#include <algorithm>
#include <cctype>
#include <tuple>

#include <fmt/format.h>

#include "pipeline/base/near_names.h"
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

// Returns "" if none is near enough or begun. On a tie prefers the same letters: from for "form".
std::string nearest(std::string_view word, const std::vector<std::string>& candidates) {
  std::string best;
  if (word.size() > kLongestMisspelt) return best;
  const std::string lower = in_lower_case(word);
  std::size_t best_distance = std::max<std::size_t>(1, word.size() / 3) + 1;
  for (const std::string& c : candidates) {
    if (c.size() > word.size() + best_distance) continue;
    const std::size_t d = c != word && in_lower_case(c) == lower ? 1 : edit_distance(word, c);
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

}  // namespace melflow
