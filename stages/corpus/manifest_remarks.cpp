#include "stages/corpus/manifest_remarks.h"

#include <strings.h>
#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "pipeline/base/problem.h"
#include "stages/containers/container.h"
#include "stages/corpus/group_table.h"
#include "stages/corpus/split_name.h"
#include "stages/corpus/table_reader.h"
#include "stages/corpus/text_lines.h"

namespace melflow {
std::string columns_not_read(const FileListOptions& options, const std::string& path,
                             const std::vector<std::string>& columns,
                             const std::vector<int>& used) {
  std::vector<std::string> unused;
  const bool has_groups =
      fmt::format("{},", fmt::join(columns, ",")).starts_with(std::string(kGroupTable) + ',');
  for (std::size_t c = has_groups ? kGroupTableColumns : 0; c < columns.size(); ++c)
    if (std::find(used.begin(), used.end(), static_cast<int>(c)) == used.end())
      unused.push_back(!columns[c].empty() ? columns[c]
                                           : "one without a name (the index of pandas, which "
                                             "to_csv(index=False) omits)");
  if (unused.empty()) return "";
  constexpr std::string_view kOfParts[] = {"start", "offset", "begin", "start_time", "end"};
  const bool has_parts =
      !options.utterances && std::find_first_of(unused.begin(), unused.end(), std::begin(kOfParts),
                                                std::end(kOfParts)) != unused.end();
  return fmt::format(
      "{}: columns not used: {}{}", path, fmt::join(unused, ", "),
      has_parts ? "; for parts of recordings write utterances: {}, and columns_are where these "
                  "are not start and end"
                : "");
}

std::string paths_not_utf8(const std::string& path, const Manifest& manifest) {
  MissingCells others;
  std::size_t first = 0;
  for (std::size_t i = 0; i < manifest.size(); ++i) {
    if (is_utf8(manifest.file_name(i)) && is_utf8(manifest.folder(i))) continue;
    if (others.count() == 0) first = i;
    others.add(manifest.relative(i));
  }
  if (others.count() == 0 || stamp_of(manifest.path(first)).size >= 0) return "";
  return fmt::format(
      "{}: {} of {} paths are not UTF-8 ({}), and the first is not there; if the list "
      "is Latin-1, convert it: {}",
      path, others.count(), manifest.size(), others.first(), conversion_to_utf8(path));
}

std::string lines_of_one_path(const std::string& path, const char* what, const Manifest& manifest,
                              std::vector<DoublePaths::Pair> doubles) {
  std::erase_if(doubles, [&](const DoublePaths::Pair& d) {
    return !manifest.problem(d.first).empty() || !manifest.problem(d.second).empty();
  });
  if (doubles.empty()) return "";
  const DoublePaths::Pair& one = doubles.front();
  std::string text = fmt::format(
      "{}: {} of {} {}s name a path that was listed before, such as {}{}", path, doubles.size(),
      manifest.size(), what, manifest.name(one.second),
      one.first_line == 0 ? ""
                          : fmt::format(" (lines {} and {})", one.first_line, one.second_line));
  const auto crosses = [&](const DoublePaths::Pair& d) {
    return manifest.split(d.first) != manifest.split(d.second);
  };
  if (const auto d = std::find_if(doubles.begin(), doubles.end(), crosses); d != doubles.end())
    text += fmt::format("; {} in another split: {} is in {} and in {}",
                        std::count_if(doubles.begin(), doubles.end(), crosses),
                        manifest.name(d->second), split_of(manifest, d->first),
                        split_of(manifest, d->second));
  return fmt::format("{}. Every {} gives rows of its own", text, what);
}

std::string_view split_of(const Manifest& manifest, std::size_t file) {
  const int s = manifest.split(file);
  return s < 0 ? "no split" : std::string_view(manifest.split_names()[static_cast<std::size_t>(s)]);
}

std::string files_without_group(const FileListOptions& options, const Manifest& manifest,
                                const SplitGroups& groups) {
  if (groups.unmatched() == 0) return "";
  std::string text =
      fmt::format("split_group: {} of {} files are in no group, such as {}: {}", groups.unmatched(),
                  manifest.size(), manifest.name(groups.first_unmatched()), groups.why_unmatched());
  if (options.splits != Splits::ratio) return text + ". Whether they cross splits is unknown";
  switch (options.split_unmatched) {
    case SplitUnmatched::error:
      throw RunError(
          text +
          ". Correct the rule, or say with split_unmatched what they are: own_group (each is "
          "drawn by itself), one_group (they stay together) or no_split");
    case SplitUnmatched::own_group:
      return text + ". Each of them is drawn by itself (split_unmatched: own_group)";
    case SplitUnmatched::one_group:
      return text + ". They are one group (split_unmatched: one_group)";
    case SplitUnmatched::no_split:
      return text + ". They are in no split (split_unmatched: no_split)";
  }
  return text;
}

std::string names_of_splits(const std::string& option, const Manifest& manifest, std::size_t first,
                            std::size_t count) {
  return fmt::format(
      "{}: for {} of {} files this is the folder of the split (splits: top_dir), {} for {}; find "
      "it in the path by a regular expression whose ( ) marks it, or put the files into folders "
      "below",
      option, count, manifest.size(), split_of(manifest, first), manifest.name(first));
}

std::string groups_across_splits(const Manifest& manifest, const SplitGroups& groups) {
  const std::vector<std::uint64_t>& keys = groups.keys();
  if (keys.empty()) return "";
  std::unordered_map<std::uint64_t, std::size_t> first;
  std::unordered_map<std::uint64_t, std::pair<std::size_t, std::size_t>> crossing;
  for (std::size_t i = 0; i < manifest.size(); ++i) {
    if (keys[i] == SplitGroups::kNone) continue;
    const auto [it, is_new] = first.try_emplace(keys[i], i);
    if (!is_new && manifest.split(i) != manifest.split(it->second))
      crossing.try_emplace(keys[i], it->second, i);
  }
  if (crossing.empty()) return "";
  auto least = crossing.begin()->second;
  for (const auto& [key, files] : crossing) least = std::min(least, files);
  return fmt::format(
      "{} of {} groups (split_group) cross splits; {} is in {}, {} of the same group in "
      "{}",
      crossing.size(), first.size(), manifest.name(least.first), split_of(manifest, least.first),
      manifest.name(least.second), split_of(manifest, least.second));
}

std::string splits_alike(const Manifest& manifest) {
  const std::vector<std::string>& names = manifest.split_names();
  for (std::size_t i = 0; i < names.size(); ++i)
    for (std::size_t j = i + 1; j < names.size(); ++j)
      if (strcasecmp(names[i].c_str(), names[j].c_str()) == 0)
        return fmt::format(
            "the splits {} and {} differ in case only, and are two splits; if one is meant, give "
            "it one name",
            names[i], names[j]);
  return "";
}

// A model cannot learn a label that the training split lacks.
std::string labels_not_in_training(const Manifest& manifest) {
  const std::vector<std::string>& names = manifest.label_names();
  std::vector<std::string> training;
  std::vector<bool> trains;
  for (const std::string& split : manifest.split_names()) {
    trains.push_back(is_training_split(split));
    if (trains.back()) training.push_back(split);
  }
  if (training.empty()) return "";
  std::vector<std::size_t> in_training(names.size(), 0), elsewhere(names.size(), 0);
  for (std::size_t i = 0; i < manifest.size(); ++i)
    for (const std::int32_t l : manifest.labels(i))
      if (manifest.split(i) >= 0)
        ++(trains[static_cast<std::size_t>(manifest.split(i))]
               ? in_training
               : elsewhere)[static_cast<std::size_t>(l)];
  std::vector<std::string> unseen;
  bool is_in_two = false;  // whether a label is in training and elsewhere
  for (std::size_t l = 0; l < names.size(); ++l) {
    if (elsewhere[l] == 0) continue;
    if (in_training[l] == 0) unseen.push_back(names[l]);
    is_in_two = is_in_two || in_training[l] > 0;
  }
  if (unseen.empty()) return "";
  std::sort(unseen.begin(), unseen.end());
  constexpr std::size_t kMostNamed = 5;
  const std::size_t named = std::min(unseen.size(), kMostNamed);
  return fmt::format(
      "{} of {} labels have no file in {}, but in other splits: {}{}{}", unseen.size(),
      names.size(), fmt::join(training, " or "),
      fmt::join(unseen.begin(), unseen.begin() + static_cast<std::ptrdiff_t>(named), ", "),
      named < unseen.size() ? ", ..." : "",
      is_in_two ? ""
                : "; no label is in training and in another split, as where labels are speakers");
}

std::string moves_between_splits(const Manifest& manifest, const EarlierSplits& earlier) {
  std::map<std::pair<std::string_view, std::string_view>, std::size_t> moves;
  std::size_t moved = 0, known = 0;
  std::string example;
  for (std::size_t i = 0; i < manifest.size() && !earlier.empty(); ++i) {
    const std::string path = manifest.name(i);
    const auto it = earlier.find(path);
    if (it == earlier.end() || it->second.empty()) continue;
    ++known;
    const std::string_view now = split_of(manifest, i);
    if (now == it->second) continue;
    if (moved++ == 0) example = path;
    ++moves[{it->second, now}];
  }
  if (moved == 0) return "";
  std::string text;
  for (const auto& [way, count] : moves)
    text +=
        fmt::format("{}{} from {} to {}", text.empty() ? "" : ", ", count, way.first, way.second);
  return fmt::format("{} of {} files of the earlier output are in another split now: {}; one is {}",
                     moved, known, text, example);
}

}  // namespace melflow
