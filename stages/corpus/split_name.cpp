#include "stages/corpus/split_name.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <iterator>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "pipeline/text.h"
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

// The place of a split by its name: training, validation, test, others.
int rank_of(std::string name) {
  static constexpr std::array<std::array<const char*, 4>, 3> kKnown{
      {{"train", "training", "tr", "trn"},
       {"val", "valid", "validation", "dev"},
       {"test", "testing", "tst", "eval"}}};
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  int rank = 0;
  for (const auto& names : kKnown) {
    if (std::find(names.begin(), names.end(), name) != names.end()) return rank;
    ++rank;
  }
  return rank;
}

}  // namespace

std::string split_name_problem(std::string_view name) {
  if (can_be_stored(name) && !std::binary_search(taken_names().begin(), taken_names().end(), name))
    return {};
  return fmt::format(
      "'{}' cannot be the name of a split: it becomes part of names in the output, so it has 1 to "
      "{} "
      "bytes of UTF-8, no '/' and no control characters, does not begin with '.', and is none of "
      "{}",
      excerpt(name), kLongest, fmt::join(taken_names(), ", "));
}

std::string column_name_problem(std::string_view name) {
  if (can_be_stored(name)) return {};
  return fmt::format(
      "'{}' cannot be the name of a column: it becomes that of a dataset, so it has 1 to {} bytes "
      "of UTF-8, no '/' and no control characters, and does not begin with '.'",
      excerpt(name), kLongest);
}

void sort_by_purpose(std::vector<std::string>& names) {
  std::stable_sort(names.begin(), names.end(), [](const std::string& a, const std::string& b) {
    return rank_of(a) < rank_of(b);
  });
}

}  // namespace melflow
