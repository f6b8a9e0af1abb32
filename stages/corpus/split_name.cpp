#include "stages/corpus/split_name.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <iterator>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "pipeline/base/text.h"
#include "stages/items.h"

namespace melflow {
namespace {

// Names that an output uses for other things: groups, datasets and the index of a .npy file.
const std::vector<std::string_view>& taken_names() {
  static const std::vector<std::string_view> names = [] {
    std::vector<std::string_view> out{"band_hz", "columns", "files",      "index",   "labels",
                                      "remarks", "splits",  "statistics", "targets", "warnings"};
    out.insert(out.end(), std::begin(kRowNames), std::end(kRowNames));
    std::sort(out.begin(), out.end());
    return out;
  }();
  return names;
}
constexpr std::size_t kLongest = 100;  // [bytes]; the whole file name may have 255

bool can_be_stored(std::string_view name) {
  return !name.empty() && name.size() <= kLongest && !name.starts_with('.') &&
         name.find('/') == name.npos && excerpt(name) == name;
}

// The purpose of a split, in the order in which splits are listed.
enum class Purpose { training, validation, test, other };

Purpose purpose_of_word(const std::string& word) {
  static constexpr std::array<std::array<const char*, 4>, 3> kKnown{
      {{"train", "training", "tr", "trn"},
       {"val", "valid", "validation", "dev"},
       {"test", "testing", "tst", "eval"}}};
  for (std::size_t p = 0; p < kKnown.size(); ++p)
    if (std::find(kKnown[p].begin(), kKnown[p].end(), word) != kKnown[p].end())
      return static_cast<Purpose>(p);
  return Purpose::other;
}

// Splits a name into words of letters, in lower case; bytes beyond ASCII count as letters.
std::vector<std::string> words_of(std::string_view name) {
  std::vector<std::string> out{""};
  for (const char c : name) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x80 || std::isalpha(byte) != 0)
      out.back() += static_cast<char>(std::tolower(byte));
    else
      out.emplace_back();
  }
  return out;
}

// The first word decides, but training data set aside for validation or test is not for training.
Purpose purpose_of(std::string_view name) {
  const std::vector<std::string> words = words_of(name);
  const Purpose first = purpose_of_word(words.front());
  if (first != Purpose::training) return first;
  for (const std::string& word : words)
    if (const Purpose p = purpose_of_word(word); p == Purpose::validation || p == Purpose::test)
      return p;
  return first;
}

}  // namespace

std::string split_name_problem(std::string_view name) {
  if (can_be_stored(name) && !std::binary_search(taken_names().begin(), taken_names().end(), name))
    return {};
  return fmt::format(
      "'{}' cannot be the name of a split: it becomes part of names in the output, so it has 1 to "
      "{} bytes of UTF-8, no '/' and no control characters, does not begin with '.', and is none "
      "of {}",
      excerpt(name), kLongest, fmt::join(taken_names(), ", "));
}

std::string column_name_problem(std::string_view name) {
  if (can_be_stored(name)) return {};
  return fmt::format(
      "'{}' cannot be the name of a column: it becomes that of a dataset, so it has 1 to {} bytes "
      "of UTF-8, no '/' and no control characters, and does not begin with '.'",
      excerpt(name), kLongest);
}

bool is_training_split(std::string_view name) { return purpose_of(name) == Purpose::training; }

bool is_known_split(std::string_view name) { return purpose_of(name) != Purpose::other; }

void sort_by_purpose(std::vector<std::string>& names) {
  std::stable_sort(names.begin(), names.end(), [](const std::string& a, const std::string& b) {
    return purpose_of(a) < purpose_of(b);
  });
}

}  // namespace melflow
