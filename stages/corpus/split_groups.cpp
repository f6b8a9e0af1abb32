#include "stages/corpus/split_groups.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>

#include <fmt/format.h>

#include "stages/corpus/path_parts.h"

namespace melflow {

SplitGroups::SplitGroups(const FileListOptions& options)
    : options_(options),
      is_wanted_(options.splits == Splits::ratio || !options.split_group.empty()) {
  if (options.groups_by_pattern()) pattern_.emplace(options.split_group);
}

void SplitGroups::add_other() {
  if (is_wanted_) keys_.push_back(kNone);
}

void SplitGroups::add(std::string_view path, std::string_view cell) {
  if (!is_wanted_) return;
  const std::string_view group = group_of(path, cell);
  if (!group.empty()) return keys_.push_back(hash(group));
  if (!options_.split_group.empty() && unmatched_++ == 0) first_unmatched_ = keys_.size();
  if (options_.split_unmatched == SplitUnmatched::no_split && !options_.split_group.empty())
    return keys_.push_back(kNone);
  keys_.push_back(hash(options_.split_unmatched == SplitUnmatched::one_group ? "" : path));
}

// "" for a file that stands for itself.
std::string_view SplitGroups::group_of(std::string_view path, std::string_view cell) const {
  if (options_.split_group == "parent_dir")
    return path.substr(0, path.rfind('/') == path.npos ? 0 : path.rfind('/'));
  if (options_.split_group == "top_dir") return first_folder(path);
  if (!pattern_) return cell;
  std::cmatch match;
  if (!std::regex_search(path.data(), path.data() + path.size(), match, *pattern_)) return "";
  return {match[1].first, static_cast<std::size_t>(match[1].length())};
}

std::uint64_t SplitGroups::hash(std::string_view text) const {
  const std::uint64_t h = XXH3_64bits_withSeed(text.data(), text.size(), options_.split_seed);
  return h == kNone ? 1 : h;
}

std::string SplitGroups::why_unmatched() const {
  if (pattern_) return fmt::format("'{}' finds no name in its path", options_.split_group);
  if (options_.groups_by_column())
    return fmt::format("its cell of the column '{}' is empty", options_.split_group);
  return "it lies in no folder below the root";
}

}  // namespace melflow
