#include "stages/corpus/table_reader.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <iterator>
#include <system_error>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "pipeline/base/near_names.h"
#include "pipeline/base/text.h"
#include "stages/corpus/csv.h"
#include "stages/corpus/json_lines.h"
#include "stages/corpus/kaldi_folder.h"
#include "stages/corpus/lhotse_manifest.h"
#include "stages/corpus/mapped_table.h"

namespace melflow {
namespace {

// Whether the path ends so, in upper or lower case; a .gz behind that does not count.
bool ends_in(std::string_view path, std::string_view ending) {
  if (ending != ".gz" && ends_in(path, ".gz")) path.remove_suffix(3);
  return path.size() > ending.size() &&
         std::equal(ending.rbegin(), ending.rend(), path.rbegin(), [](char a, char b) {
           return a == std::tolower(static_cast<unsigned char>(b));
         });
}

}  // namespace

int require_column(TableReader& table, const std::string& path, const std::string& name,
                   const char* option) {
  const int column = table.find_column(name);
  if (column >= 0) return column;
  const std::vector<std::string>& all = table.columns();
  std::string advice = did_you_mean(name, all);
  if (all.size() == 1)
    for (const char* other : {"\t", "|", ";"})
      if (all.front().find(other) != std::string::npos)
        advice = fmt::format("; if these are several columns, write delimiter: \"{}\"",
                             *other == '\t' ? "\\t" : other);
  throw RunError(fmt::format("{}: there is no column '{}', which {} asks for; it has {}{}", path,
                             name, option, names_text(name, all), advice));
}

int mapped_column(TableReader& table, const std::string& path, const std::string& name,
                  const ColumnsAre& are) {
  if (const int column = table.find_column(name); column >= 0 || !are.has(name)) return column;
  const std::string option = "columns_are." + name;
  for (const std::string& source : are.sources(name))
    require_column(table, path, source, option.c_str());
  return -1;
}

std::string path_column_advice(std::string_view missing, const std::vector<std::string>& columns) {
  constexpr std::string_view kOthers[] = {"file_name",      "filename",  "file",
                                          "filepath",       "file_path", "wav",
                                          "audio_filepath", "audio",     "fname"};
  if (missing != "path") return {};
  const auto it =
      std::find_first_of(columns.begin(), columns.end(), std::begin(kOthers), std::end(kOthers));
  if (it == columns.end()) return {};
  return fmt::format("; where {0} has the paths, write columns_are: {{path: {0}}}", *it);
}

std::string TableReader::where(int column) const {
  const Place at = place(column);
  const std::string_view id = this->id();
  return fmt::format("{}:{}{}", at.path, at.line, id.empty() ? "" : ": " + excerpt(id));
}

double TableReader::seconds_in(std::string_view text) {
  double out = 0;
  const auto [end, error] = std::from_chars(text.begin(), text.end(), out);
  return error == std::errc() && end == text.end() && std::isfinite(out) && out > 0 ? out : 0;
}

void MissingCells::add(std::string_view name) {
  constexpr std::size_t kMostNamed = 3;
  if (count_++ < kMostNamed) first_.push_back(excerpt(name));
}

std::string MissingCells::first() const {
  return fmt::format("{}{}", fmt::join(first_, ", "), count_ > first_.size() ? ", ..." : "");
}

bool has_separators(std::string_view path) {
  return ends_in(path, ".csv") || ends_in(path, ".tsv");
}

bool is_json_lines(std::string_view path) {
  return ends_in(path, ".jsonl") || ends_in(path, ".ndjson") || ends_in(path, ".json");
}

bool is_table(std::string_view path) {
  return has_separators(path) || is_json_lines(path) || KaldiFolder::is_one(std::string(path));
}

std::unique_ptr<TableReader> open_table(const std::string& path,
                                        const std::vector<std::string>& required,
                                        const TableFormat& format, const std::string& folder) {
  std::vector<std::string> in_table;
  for (const std::string& name : required)
    for (std::string& source : format.columns_are.sources(name))
      in_table.push_back(std::move(source));
  std::unique_ptr<TableReader> table;
  if (KaldiFolder::is_one(path)) {
    table = std::make_unique<KaldiFolder>(path, in_table);
  } else if (is_json_lines(path) && LhotseManifest::is_one(path)) {
    table = std::make_unique<LhotseManifest>(path, in_table);
  } else if (is_json_lines(path)) {
    table = std::make_unique<JsonLinesReader>(path, in_table);
  } else {
    TableFormat cells = format;
    if (cells.delimiter.empty()) cells.delimiter.assign(1, ends_in(path, ".tsv") ? '\t' : ',');
    table = std::make_unique<CsvReader>(path, in_table, cells);
  }
  return with_mapped_columns(std::move(table), format, folder);
}

std::unique_ptr<TableReader> with_mapped_columns(std::unique_ptr<TableReader> table,
                                                 const TableFormat& format,
                                                 const std::string& folder) {
  if (format.columns_are.list.empty()) return table;
  return std::make_unique<MappedTable>(std::move(table), format.columns_are, folder);
}

}  // namespace melflow
