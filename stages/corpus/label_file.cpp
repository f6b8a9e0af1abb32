#include "stages/corpus/label_file.h"

#include <memory>
#include <unordered_map>
#include <vector>

#include <fmt/format.h>

#include "stages/containers/file_channel.h"
#include "stages/corpus/path_parts.h"
#include "stages/corpus/table_columns.h"
#include "stages/corpus/table_reader.h"

namespace melflow {
namespace {

// Reads the next row; false at the end. `why` gets the problem with a row whose path is known, else
// "".
bool next_row(TableReader& table, std::string& why) {
  why.clear();
  try {
    if (!table.next()) return false;
  } catch (const BadLine& e) {
    why = e.what();
  }
  if (table.cell("path").empty() && !why.empty()) throw BadLine(why);
  return true;
}

}  // namespace

void read_label_file(const FileListOptions& options, Manifest& manifest,
                     const std::function<void(std::string)>& warn,
                     const LabelColumns::Renamed& renamed) {
  std::unordered_map<std::string, std::vector<std::size_t>> files;
  const BelowRoot below_root(options.root);
  for (std::size_t i = 0; i < manifest.size(); ++i) {
    const std::string path = below_root(manifest.relative(i)), file = without_channel(path);
    files[path].push_back(i);
    if (file != path) files[file].push_back(i);
  }
  const bool with_labels = options.labels == Labels::file;
  const std::unique_ptr<TableReader> table =
      open_table(options.label_file, {"path"}, options.table,
                 folder_of_list(options.label_file, options.root));
  LabelColumns columns(options, *table, options.label_file, with_labels, renamed);
  std::vector<bool> is_named(manifest.size(), false), was_named(manifest.size(), false);
  std::size_t doubles = 0, taken = 0;
  std::string example;
  BadLines bad;
  for (std::string why; next_row(*table, why);) {
    const auto it = files.find(below_root(table->cell("path")));
    if (it == files.end()) continue;
    if (was_named[it->second.front()] && doubles++ == 0)
      example = fmt::format("{} (line {})", it->first, table->line());
    was_named[it->second.front()] = true;
    for (const std::size_t i : it->second) {
      ++taken;
      try {
        if (!why.empty()) throw BadLine(why);
        columns.take(*table, manifest, i);
        is_named[i] = !with_labels || !manifest.labels(i).empty();
      } catch (const BadLine& e) {
        bad.add(manifest, i, e.what());
      }
    }
  }
  if (const std::string remark = bad.remark(options.label_file, "line", taken); !remark.empty())
    warn(remark);
  for (const std::string& remark : table->remarks(columns.columns())) warn(remark);
  if (doubles > 0)
    warn(fmt::format(
        "{}: {} a path that was listed before, such as {}; the last one counts", options.label_file,
        doubles == 1 ? "1 line names" : fmt::format("{} lines name", doubles), example));
  MissingCells without;
  for (std::size_t i = 0; i < manifest.size(); ++i)
    if (!is_named[i] && manifest.problem(i).empty()) without.add(manifest.name(i));
  if (without.count() > 0)
    warn(fmt::format("{}: {} of {} files have no {} there ({})", options.label_file,
                     without.count(), manifest.size(), with_labels ? "label" : "line",
                     without.first()));
}

void check_label_file(const FileListOptions& options,
                      const std::function<void(std::string)>& warn) {
  const std::unique_ptr<TableReader> table =
      open_table(options.label_file, {"path"}, options.table,
                 folder_of_list(options.label_file, options.root));
  LabelColumns columns(options, *table, options.label_file, options.labels == Labels::file);
  Manifest any;  // one entry that takes the values of every row
  any.set_target_names(options.targets);
  any.set_text_names(options.text_names());
  any.add(any.add_folder(""), "");
  BadLines bad;
  std::size_t lines = 0;
  for (std::string why; next_row(*table, why); ++lines) {
    try {
      if (!why.empty()) throw BadLine(why);
      columns.take(*table, any, 0);
    } catch (const BadLine& e) {
      bad.add(any, 0, e.what());
    }
  }
  if (const std::string remark = bad.remark(options.label_file, "line", lines); !remark.empty())
    warn(remark);
  for (const std::string& remark : table->remarks(columns.columns())) warn(remark);
}

}  // namespace melflow
