#include "stages/corpus/guess/table_guess.h"

#include <algorithm>
#include <initializer_list>
#include <map>
#include <memory>
#include <set>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "pipeline/base/problem.h"
#include "stages/corpus/table_reader.h"
#include "stages/corpus/text_lines.h"

namespace melflow::guesses {

namespace fs = std::filesystem;

namespace {

// Whether a manifest of NeMo has parts of recordings, maybe in its last lines only.
bool has_offsets(const fs::path& list) {
  TextLines lines(list.string());
  for (std::string line; lines.next(line);)
    if (line.find("\"offset\"") != line.npos) return true;
  return false;
}

// Finds the first of these names among a table's columns.
std::string one_of(TableReader& table, std::initializer_list<const char*> names) {
  for (const char* name : names)
    if (table.find_column(name) >= 0) return name;
  return "";
}

// Finds the folder below `folder` to which a path of a table is relative: "", "audio/", ...
std::optional<std::string> folder_of_paths(const fs::path& folder, const fs::path& list,
                                           const std::string& path) {
  if (path.empty()) return std::nullopt;
  std::error_code error;
  const auto is_file = [&](const fs::path& p) { return fs::is_regular_file(p, error); };
  if (path.starts_with('/')) return is_file(path) ? std::optional<std::string>("") : std::nullopt;
  Texts folders{"", fs::relative(list.parent_path(), folder).string() + '/'};
  for (const std::string& name : names_in(folder))
    if (fs::is_directory(folder / name, error)) folders.push_back(name + '/');
  for (const std::string& below : folders)
    if (is_file(folder / below / path)) return below == "./" ? "" : below;
  return std::nullopt;
}

// A table that can be used, and the options for it.
struct OfTable {
  CorpusGuess guess;  // without `columns`; `manifest` is the table
  Listed list;
  bool is_nemo = false;
};

// Some of the different texts of a column.
std::set<std::string> texts_of(const std::string& list, const std::string& column) {
  constexpr std::size_t kMost = 64;
  const std::unique_ptr<TableReader> table = open_table(list, {});
  std::set<std::string> out;
  if (table->find_column(column) < 0) return out;
  while (out.size() < kMost) {
    try {
      if (!table->next()) break;
      out.insert(table->cell(column));
    } catch (const BadLine&) {
    }
  }
  return out;
}

// Returns the option for the column that says which channel of its file a line is, with a remark;
// "" if there is no such column.
std::pair<const char*, std::string> channel_option(const std::string& list) {
  std::set<std::string> texts = texts_of(list, "channel");
  texts.erase("");
  if (texts.empty()) return {"", ""};
  const bool are_numbers = std::all_of(texts.begin(), texts.end(), [](const std::string& text) {
    return text.find_first_not_of("0123456789") == text.npos;
  });
  if (texts.size() > 1 && are_numbers)
    return {texts.contains("0") ? "channel_from_0" : "channel", ""};
  return {"", fmt::format(
                  "the column channel is not used: {}; where each line is one channel of "
                  "its file, write columns_are: {{channel: COLUMN}} with a column of "
                  "numbers from 1, or channel_from_0",
                  are_numbers ? "all its texts are the same" : "its texts are not all numbers")};
}

// The column with paths of files, and the folder below `folder` where these begin.
std::optional<std::pair<std::string, std::string>> paths_in(TableReader& table,
                                                            const fs::path& folder,
                                                            const fs::path& list) {
  const std::string known = one_of(table, {"path", "file_name", "filename", "file", "filepath",
                                           "file_path", "wav", "fname", "audio"});
  constexpr int kRows = 20;  // some of the files may be missing
  for (int rows = 0; rows < kRows; ++rows) {
    try {
      if (!table.next()) break;
    } catch (const BadLine&) {
      continue;
    }
    Texts columns = known.empty() ? table.columns() : Texts{known};
    for (const std::string& column : columns) {
      if (table.column(column) < 0 || !ColumnsAre::is_name(column)) continue;
      try {
        if (auto below = folder_of_paths(folder, list, table.cell(column)))
          return std::pair(column, std::move(*below));
      } catch (const BadLine&) {  // of that column, which has no paths
      }
    }
  }
  return std::nullopt;
}

std::optional<OfTable> of_table(const fs::path& folder, const fs::path& list) {
  const std::unique_ptr<TableReader> table = open_table(list.string(), {});
  const auto paths = paths_in(*table, folder, list);
  if (!paths) return std::nullopt;
  const auto& [path, below] = *paths;
  OfTable out;
  out.is_nemo = table->column("audio_filepath") >= 0 && path == "path";
  out.guess = {
      fmt::format("{} ({}, {} columns)", out.is_nemo ? "a manifest of NeMo" : "a table with paths",
                  fs::relative(list, folder).string(), table->columns().size()),
      {{"root", text((folder / below).string())}, {"manifest", text(list.string())}},
      {}};
  auto& options = out.guess.options;
  if (options.front().second.text().ends_with('/'))
    options.front().second = text((folder / below).parent_path().string());
  Entries are;
  const auto name = [&](const char* role, std::initializer_list<const char*> names) {
    std::string column = one_of(*table, names);
    if (!column.empty() && column != role) are.emplace_back(role, text(column));
    return column;
  };
  if (path != "path") are.emplace_back("path", text(path));
  const std::string label = one_of(*table, {"label", "category", "class", "label_name"});
  const bool has_labels = !label.empty() && texts_of(list.string(), label).size() > 1;
  if (has_labels) name("label", {label.c_str()});
  name("split", {"split", "fold"});
  const bool has_start =
      !name("start", {"start", "offset", "begin", "start_time", "start_s", "start_seconds"})
           .empty();
  const bool has_end = (has_start || (out.is_nemo && has_offsets(list))) &&
                       (!name("end", {"end", "stop", "end_time", "end_s", "end_seconds"}).empty() ||
                        table->find_column("duration") >= 0);
  if (!has_end || out.is_nemo) std::erase_if(are, [](const auto& a) { return a.first == "start"; });
  const auto [channel, not_used] = channel_option(list.string());
  if (*channel != '\0') are.emplace_back(channel, word("channel"));
  if (!not_used.empty()) out.guess.remarks.push_back(not_used);
  if (!are.empty()) options.emplace_back("columns_are", map(are));
  if (has_labels) options.emplace_back("labels", word("manifest"));
  if (has_end) options.emplace_back("utterances", map({}));
  out.list.path = list.string();
  for (const char* column :
       {"text", "sentence", "transcription", "transcript", "speaker", "client_id"})
    if (table->find_column(column) >= 0) out.list.columns.emplace_back(column);
  if (!label.empty() && !has_labels)
    out.guess.remarks.push_back(
        fmt::format("the column {} is not used: all its texts are the same", label));
  return out;
}

bool is_same(const Entries& a, const Entries& b) { return to_json(map(a)) == to_json(map(b)); }

CorpusGuess with_columns(const OfTable& table) {
  CorpusGuess out = table.guess;
  take_columns({table.list}, out);
  return out;
}

}  // namespace

std::optional<CorpusGuess> table(const fs::path& folder, const fs::path& list) {
  const auto found = of_table(folder, list);
  return found ? std::optional(with_columns(*found)) : std::nullopt;
}

std::optional<CorpusGuess> tables(const fs::path& folder) {
  for (const fs::path& parent : {folder, folder / "meta", folder / "metadata"}) {
    std::map<std::string, OfTable> found;
    Texts lists;
    for (const std::string& name : names_in(parent)) {
      const fs::path list = parent / name;
      std::error_code error;
      if (!fs::is_regular_file(list, error) || !is_table(list.string())) continue;
      try {
        if (auto table = of_table(folder, list)) {
          found.emplace(list.string(), std::move(*table));
          lists.push_back(list.string());
        }
      } catch (const RunError&) {  // some other table
      }
    }
    if (lists.empty()) continue;
    const auto splits = lists_by_split(named_after_splits(lists));
    if (splits.empty()) return with_columns(found.at(lists.front()));
    OfTable& first = found.at(splits.front().second);
    auto& manifest = first.guess.options[1].second;
    std::vector<Listed> listed;
    Texts names;
    for (const auto& [split, list] : splits) {
      OfTable& other = found.at(list);
      if (&other != &first) {
        other.guess.options[1].second = manifest;
        if (!is_same(other.guess.options, first.guess.options)) return with_columns(first);
      }
      listed.push_back(other.list);
      names.push_back(fs::relative(list, folder));
    }
    manifest = map_of(splits);
    first.guess.what = fmt::format("{}, each a split ({})",
                                   first.is_nemo ? "manifests of NeMo" : "tables with paths",
                                   fmt::join(names, ", "));
    take_columns(listed, first.guess);
    return first.guess;
  }
  return std::nullopt;
}

std::string without_paths(const fs::path& list) {
  const std::unique_ptr<TableReader> table = open_table(list.string(), {});
  try {
    table->next();  // lines of JSON have no head
  } catch (const BadLine&) {
  }
  const Texts& columns = table->columns();
  return fmt::format(
      "{}: no column has paths of files that are there, from the folder of the table or the one "
      "above it; its columns are {}. Write the pipeline by hand: root: FOLDER, manifest: {}, "
      "columns_are: {{path: COLUMN}}, where paths lack a folder or an ending columns_are: {{path: "
      "\"wavs/{{COLUMN}}.wav\"}}; if that is its first row, header: [NAME, ...] too "
      "(docs/corpora.md)",
      list.string(), columns.empty() ? "none" : some_of(columns), list.string());
}

}  // namespace melflow::guesses
