#include "stages/corpus/manifest_remarks.h"

#include <algorithm>
#include <iterator>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "stages/corpus/split_remarks.h"

namespace melflow {

std::string columns_not_read(const FileListOptions& options,
                             const std::vector<std::string>& columns,
                             const std::vector<int>& used) {
  std::vector<std::string> unused;
  for (std::size_t c = 0; c < columns.size(); ++c)
    if (std::find(used.begin(), used.end(), static_cast<int>(c)) == used.end())
      unused.push_back(columns[c]);
  if (unused.empty()) return "";
  constexpr std::string_view kOfParts[] = {"start",      "offset", "begin",
                                           "start_time", "end",    "duration"};
  const bool has_parts =
      !options.utterances && std::find_first_of(unused.begin(), unused.end(), std::begin(kOfParts),
                                                std::end(kOfParts)) != unused.end();
  return fmt::format(
      "{}: {} {} not read; what is read is {} ({}), split (with splits: auto or manifest), {} "
      "(with labels: manifest), and what targets, columns and split_group name{}",
      options.manifest, fmt::join(unused, ", "), unused.size() == 1 ? "is" : "are",
      options.path_column, options.utterances ? "with the places of utterances" : "a whole file",
      options.label_column,
      has_parts ? "; for parts of recordings write utterances: {start: ..., end: ...}" : "");
}

std::string lines_of_one_path(const std::string& path, const Manifest& manifest,
                              const std::vector<DoublePaths::Pair>& doubles) {
  if (doubles.empty()) return "";
  const DoublePaths::Pair& one = doubles.front();
  std::string text = fmt::format(
      "{}: {} of {} lines name a path that stood there before, such as {} (lines {} and {})", path,
      doubles.size(), manifest.size(), manifest.name(one.second), one.first_line, one.second_line);
  const auto crosses = [&](const DoublePaths::Pair& d) {
    return manifest.split(d.first) != manifest.split(d.second);
  };
  if (const auto d = std::find_if(doubles.begin(), doubles.end(), crosses); d != doubles.end())
    text += fmt::format("; {} in another split: {} is in {} and in {}",
                        std::count_if(doubles.begin(), doubles.end(), crosses),
                        manifest.name(d->second), split_of(manifest, d->first),
                        split_of(manifest, d->second));
  return text + ". Every line gives rows of its own";
}

}  // namespace melflow
