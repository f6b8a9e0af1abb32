#include "stages/corpus/manifest_remarks.h"

#include <algorithm>
#include <iterator>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "stages/corpus/split_remarks.h"
#include "stages/corpus/table_reader.h"
#include "stages/corpus/text_lines.h"

namespace melflow {

std::string columns_not_read(const FileListOptions& options,
                             const std::vector<std::string>& columns,
                             const std::vector<int>& used) {
  std::vector<std::string> unused;
  for (std::size_t c = 0; c < columns.size(); ++c)
    if (std::find(used.begin(), used.end(), static_cast<int>(c)) == used.end())
      unused.push_back(!columns[c].empty() ? columns[c]
                                           : "one without a name (the index of pandas, which "
                                             "to_csv(index=False) omits)");
  if (unused.empty()) return "";
  constexpr std::string_view kOfParts[] = {"start",      "offset", "begin",
                                           "start_time", "end",    "duration"};
  const bool has_parts =
      !options.utterances && std::find_first_of(unused.begin(), unused.end(), std::begin(kOfParts),
                                                std::end(kOfParts)) != unused.end();
  return fmt::format(
      "{}: columns not used: {}{}", options.manifest, fmt::join(unused, ", "),
      has_parts ? "; for parts of recordings write utterances: {start: ..., end: ...}" : "");
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

std::string lines_of_one_path(const std::string& path, const Manifest& manifest,
                              const std::vector<DoublePaths::Pair>& doubles) {
  if (doubles.empty()) return "";
  const DoublePaths::Pair& one = doubles.front();
  std::string text = fmt::format(
      "{}: {} of {} lines name a path that was listed before, such as {} (lines {} and {})", path,
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
