#include "stages/corpus/split_groups.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <fmt/format.h>

namespace melflow {

SplitGroups::SplitGroups(const FileListOptions& options)
    : options_(options),
      is_wanted_(options.splits == Splits::ratio || !options.split_group.empty()),
      rule_(options.group_rule()) {}

void SplitGroups::add_other() {
  if (is_wanted_) keys_.push_back(kNone);
}

void SplitGroups::add(std::string_view path, std::string_view cell) {
  if (!is_wanted_) return;
  const std::string_view group = rule_.name_of(path, cell);
  if (!group.empty()) return keys_.push_back(key_of(group, options_.split_seed));
  if (!options_.split_group.empty() && unmatched_++ == 0) first_unmatched_ = keys_.size();
  if (options_.split_unmatched == SplitUnmatched::no_split && !options_.split_group.empty())
    return keys_.push_back(kNone);
  keys_.push_back(key_of(options_.split_unmatched == SplitUnmatched::one_group ? "" : path,
                         options_.split_seed));
}

std::uint64_t SplitGroups::key_of(std::string_view name, std::uint64_t seed) {
  const std::uint64_t h = XXH3_64bits_withSeed(name.data(), name.size(), seed);
  return h == kNone ? 1 : h;
}

std::string SplitGroups::why_unmatched() const {
  if (NameRule::is_pattern(rule_.text()))
    return fmt::format("'{}' finds no name in its path", rule_.text());
  if (NameRule::is_column(rule_.text()))
    return fmt::format("its cell of the column '{}' is empty", rule_.text());
  return "it lies in no folder below the root";
}

}  // namespace melflow
