#include "stages/corpus/split_draw.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <map>
#include <set>
#include <span>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "pipeline/base/problem.h"

namespace melflow {
namespace {

class Draw {
 public:
  Draw(const FileListOptions& options, const Manifest& manifest,
       const std::vector<std::uint64_t>& keys)
      : options_(options), manifest_(manifest) {
    for (const auto& [name, share] : options.split_ratios.list) names_.push_back(name);
    for (std::size_t i = 0; i < keys.size(); ++i) {
      if (keys[i] == SplitGroups::kNone) continue;
      files_.push_back(i);
      units_.push_back({keys[i], manifest.stratum(i)});
    }
    if (!options.split_group.empty() && labels_are_groups())
      for (SplitUnit& u : units_) u.label = -1;
  }

  // Files of the earlier output keep their split, and so do their groups.
  void keep(const EarlierSplits& earlier) {
    std::unordered_map<std::uint64_t, std::size_t> first;  // unit of each group that has one
    std::set<std::uint64_t> crossing;
    std::pair<std::size_t, std::size_t> example;
    for (std::size_t u = 0; u < units_.size(); ++u) {
      const auto it = earlier.find(manifest_.name(files_[u]));
      if (it == earlier.end() || it->second.empty()) continue;
      units_[u].split = number_of(it->second, files_[u]);
      const auto [of_group, is_first] = first.try_emplace(units_[u].key, u);
      if (is_first || units_[of_group->second].split == units_[u].split) continue;
      if (crossing.empty()) example = {of_group->second, u};
      crossing.insert(units_[u].key);
    }
    if (crossing.empty()) return;
    const auto where = [this](std::size_t u) {
      return fmt::format("{} in {}", manifest_.name(files_[u]),
                         names_[static_cast<std::size_t>(units_[u].split)]);
    };
    throw RunError(fmt::format(
        "{} of {} groups (split_group) have files in several splits of the earlier output, such as "
        "{} and {}. Files keep their split in an update, and a group must not cross splits: take "
        "the groups of that run, or have all splits redrawn with split_update: redraw, which "
        "moves files between them",
        crossing.size(), groups(), where(example.first), where(example.second)));
  }

  std::vector<std::int8_t> run() const {
    const std::vector<std::int8_t> drawn = draw(units_);
    check_none_is_empty(drawn);
    std::vector<std::int8_t> out(manifest_.size(), -1);
    for (std::size_t u = 0; u < units_.size(); ++u) out[files_[u]] = drawn[u];
    return out;
  }

 private:
  // Whether every label is the name of its file's group, such as speakers that are kept together:
  // such labels cannot be in every split, so they are no strata.
  [[nodiscard]] bool labels_are_groups() const {
    std::vector<std::uint64_t> keys;  // for each label, the key of a group of that name
    for (const std::string& label : manifest_.label_names())
      keys.push_back(SplitGroups::key_of(label, options_.split_seed));
    for (std::size_t u = 0; u < units_.size(); ++u) {
      const std::span<const std::int32_t> labels = manifest_.labels(files_[u]);
      if (labels.size() > 1) return false;
      if (labels.size() == 1 && keys[static_cast<std::size_t>(labels[0])] != units_[u].key)
        return false;
    }
    return true;
  }

  [[nodiscard]] std::vector<std::int8_t> draw(const std::vector<SplitUnit>& units) const {
    return options_.split_stratify ? split_by_stratum(units, options_.split_ratios)
                                   : split_by_key(units, options_.split_ratios);
  }

  [[nodiscard]] std::vector<std::string> empty_splits(const std::vector<std::int8_t>& drawn) const {
    std::vector<std::size_t> files(names_.size(), 0);
    for (const std::int8_t s : drawn) ++files[static_cast<std::size_t>(s)];
    std::vector<std::string> empty;
    for (std::size_t s = 0; s < names_.size(); ++s)
      if (files[s] == 0) empty.push_back(names_[s]);
    return empty;
  }

  // Whether a split is empty only because files keep their split.
  [[nodiscard]] bool would_redrawing_fill() const {
    std::vector<SplitUnit> units = units_;
    for (SplitUnit& u : units) u.split = -1;
    return empty_splits(draw(units)).empty();
  }

  // Whether `way`, split_by_stratum or split_by_key, leaves no split empty.
  template <class Way>
  [[nodiscard]] bool fills(const Way& way) const {
    return empty_splits(way(units_, options_.split_ratios)).empty();
  }

  [[nodiscard]] std::int8_t number_of(std::string_view name, std::size_t file) const {
    const auto it = std::find(names_.begin(), names_.end(), name);
    if (it == names_.end())
      throw RunError(fmt::format(
          "{} is in the split '{}' of the earlier output, and split_ratios has {} only. Files keep "
          "their split in an update: name that split, too, or have all splits redrawn with "
          "split_update: redraw",
          manifest_.name(file), name, fmt::join(names_, ", ")));
    return static_cast<std::int8_t>(it - names_.begin());
  }

  [[nodiscard]] std::size_t groups() const {
    std::set<std::uint64_t> keys;
    for (const SplitUnit& u : units_) keys.insert(u.key);
    return keys.size();
  }

  void check_none_is_empty(const std::vector<std::int8_t>& drawn) const {
    std::vector<std::string> empty = empty_splits(drawn);
    if (empty.empty()) return;
    const std::string last = empty.back();
    empty.pop_back();
    throw RunError(fmt::format("splits: ratio: {}{} empty: {}",
                               empty.empty() ? "" : fmt::format("{} and ", fmt::join(empty, ", ")),
                               last + (empty.empty() ? " is" : " are"), why_empty()));
  }

  [[nodiscard]] std::string why_empty() const {
    if (std::any_of(units_.begin(), units_.end(),
                    [](const SplitUnit& u) { return u.split >= 0; }) &&
        would_redrawing_fill())
      return "no file that is left of the earlier output is in it, and files keep their split in "
             "an update; have all splits redrawn with split_update: redraw, which moves files "
             "between them, or put files of it back";
    const bool has_groups = !options_.split_group.empty();
    const char* const unit = has_groups ? "group" : "file";
    const std::size_t count = groups();
    if (count < names_.size())
      return fmt::format("there {} {} {}{} for {} splits; {}", count == 1 ? "is" : "are", count,
                         unit, count == 1 ? "" : "s", names_.size(),
                         has_groups ? "group by another folder, column or expression (split_group)"
                                    : "take fewer splits");
    if (!options_.split_stratify)
      return fmt::format(
          "every {} is drawn by its own name, and none of the {} fell to it; take another "
          "split_seed{}",
          unit, count,
          fills(split_by_stratum) ? ", or meet the shares exactly with split_stratify: true" : "");
    std::map<std::int32_t, std::set<std::uint64_t>> of_label;
    for (const SplitUnit& u : units_)
      if (u.label >= 0) of_label[u.label].insert(u.key);
    const auto single = static_cast<std::size_t>(std::count_if(
        of_label.begin(), of_label.end(), [](const auto& l) { return l.second.size() == 1; }));
    if (has_groups && single > 0 && single == of_label.size())
      return fmt::format(
          "each of {} labels has one group, and {}, the largest split, must have every label; set "
          "labels: none (columns: {{name: ...}} keeps the names), or take smaller groups "
          "(split_group)",
          single, largest());
    if (single > 0)
      return fmt::format(
          "{} labels {} one {}, and {}, the largest split, must have every label; set labels: none"
          "{}{}",
          single == of_label.size() ? fmt::format("each of {}", single)
                                    : fmt::format("{} of {}", single, of_label.size()),
          single == of_label.size() ? "has" : "have", unit, largest(),
          fills(split_by_key) ? " or split_stratify: false" : "",
          has_groups ? ", or take smaller groups (split_group)" : "");
    return fmt::format(
        "{} {}s are too few for {} splits, of which {}, the largest, must have every label; take "
        "fewer splits, or set labels: none",
        count, unit, names_.size(), largest());
  }

  [[nodiscard]] const std::string& largest() const {
    const auto& list = options_.split_ratios.list;
    return std::max_element(list.begin(), list.end(),
                            [](const auto& a, const auto& b) { return a.second < b.second; })
        ->first;
  }

  const FileListOptions& options_;
  const Manifest& manifest_;
  std::vector<std::string> names_;  // of the splits
  std::vector<std::size_t> files_;  // the files whose split is drawn
  std::vector<SplitUnit> units_;    // for each of these files
};

}  // namespace

SplitGroups::SplitGroups(const FileListOptions& options)
    : options_(options),
      are_wanted_(options.splits == Splits::ratio || !options.split_group.empty()),
      rule_(options.group_rule()) {}

void SplitGroups::add_other() {
  if (are_wanted_) keys_.push_back(kNone);
}

void SplitGroups::add(std::string_view path, std::string_view cell) {
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
  if (NameRule::is_beside(rule_.text())) return fmt::format("no {} is beside it", rule_.text());
  if (NameRule::is_column(rule_.text()))
    return fmt::format("its cell of the column '{}' is empty", rule_.text());
  return "it lies in no folder below the root";
}

std::vector<std::int8_t> draw_splits(const FileListOptions& options, const Manifest& manifest,
                                     const std::vector<std::uint64_t>& keys,
                                     const EarlierSplits& earlier) {
  Draw draw(options, manifest, keys);
  if (options.split_update == SplitUpdate::keep) draw.keep(earlier);
  return draw.run();
}

}  // namespace melflow
