#include "stages/corpus/table_reader.h"

#include <algorithm>
#include <cctype>
#include <iterator>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "pipeline/base/text.h"
#include "stages/corpus/csv.h"
#include "stages/corpus/json_lines.h"
#include "stages/corpus/kaldi_segments.h"

namespace melflow {
namespace {

bool ends_in(std::string_view path, std::string_view ending) {
  return path.size() > ending.size() &&
         std::equal(ending.rbegin(), ending.rend(), path.rbegin(), [](char a, char b) {
           return a == std::tolower(static_cast<unsigned char>(b));
         });
}

bool is_json_lines(std::string_view path) {
  return ends_in(path, ".jsonl") || ends_in(path, ".ndjson");
}

}  // namespace

int column_for(TableReader& table, const std::string& path, const std::string& name,
               const char* option) {
  const int column = table.find_column(name);
  if (column < 0)
    throw RunError(fmt::format("{}: there is no column '{}', which {} asks for; it has {}{}", path,
                               name, option, fmt::join(table.columns(), ", "),
                               did_you_mean(name, table.columns())));
  return column;
}

std::string path_column_advice(std::string_view missing, const std::vector<std::string>& columns) {
  constexpr std::string_view kOthers[] = {"file_name",      "filename",  "file",
                                          "filepath",       "file_path", "wav",
                                          "audio_filepath", "audio",     "fname"};
  if (missing != "path") return {};
  const auto it =
      std::find_first_of(columns.begin(), columns.end(), std::begin(kOthers), std::end(kOthers));
  if (it == columns.end()) return {};
  return fmt::format(
      "; where {0} has the paths, write path_column: {0} for a manifest; in a label_file, call it "
      "path",
      *it);
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

bool is_table(std::string_view path) {
  return has_separators(path) || is_json_lines(path) || KaldiSegments::is_one(path);
}

std::unique_ptr<TableReader> open_table(const std::string& path,
                                        const std::vector<std::string>& required, Quoting quoting) {
  if (KaldiSegments::is_one(path)) return std::make_unique<KaldiSegments>(path, required);
  if (is_json_lines(path)) return std::make_unique<JsonLinesReader>(path, required);
  const bool has_tabs = ends_in(path, ".tsv");
  return std::make_unique<CsvReader>(
      path, required, has_tabs ? '\t' : ',',
      quoting == Quoting::csv || (quoting == Quoting::automatic && !has_tabs));
}

}  // namespace melflow
