#include "stages/corpus/table_columns.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include <fmt/ranges.h>

#include "pipeline/base/near_names.h"
#include "pipeline/base/text.h"
#include "stages/containers/file_channel.h"
#include "stages/corpus/files_beside.h"
#include "stages/corpus/json_lines.h"
#include "stages/corpus/path_parts.h"
#include "stages/corpus/text_lines.h"
#include "stages/utterance_rule.h"

namespace melflow {
std::string_view PathColumn::take(std::string_view path, std::string_view beside,
                                  std::size_t file) {
  const std::string_view text =
      rule.text() == NameRule::kParentDir ? parent_folder(path) : rule.name_of(path, beside);
  ++files;
  if (text.empty() && without++ == 0) first_without = file;
  return text;
}

std::string PathColumn::remark(const Manifest& manifest) const {
  if (without == 0) return {};
  const std::string example = manifest.name(first_without);
  if (NameRule::is_beside(rule.text())) {
    const std::string which = fmt::format("{} is beside", rule.text());
    if (without == files && !rule.text().starts_with('.'))
      throw RunError(fmt::format(
          "{}: {} gives none of the {} recordings a text; that of {} would be in {}; correct it, "
          "or remove it",
          name, rule.text(), files, example,
          FilesBeside::place(rule.text(), manifest.relative(first_without))));
    if (without == files)
      throw RunError(
          fmt::format("{}: no {} any of the {} recordings, such as {}; correct it, or "
                      "remove it",
                      name, which, files, example));
    return fmt::format("{}: no {} {} of {} recordings, such as {}; it is empty there", name, which,
                       without, files, example);
  }
  if (without == files)
    throw RunError(
        fmt::format("{}: {} matches none of the {} paths, such as {}; correct it, or "
                    "remove it",
                    name, rule.text(), files, example));
  return fmt::format("{}: {} finds no text in {} of {} paths, such as {}; it is empty there", name,
                     rule.text(), without, files, example);
}

SpanColumns::SpanColumns(const ColumnsAre& are, TableReader& table, const std::string& path) {
  const auto column = [&](const char* name) { return mapped_column(table, path, name, are); };
  const auto missing = [&](const char* what) {
    throw RunError(fmt::format(
        "{}: there is no column {}, which utterances needs; it has {}; name another by "
        "columns_are: {{start: COLUMN, end: COLUMN}}, or duration in place of end; where each line "
        "is a whole recording, omit utterances",
        path, what, names_text(what, table.columns())));
  };
  start_ = column("start");
  if (start_ < 0) missing("'start'");
  if (!are.has("duration")) end_ = column("end");
  is_duration_ = end_ < 0;
  if (is_duration_) end_ = column("duration");
  if (end_ < 0) missing("'end' or 'duration'");
}

double SpanColumns::number(const TableReader& table, int column) const {
  const std::string& text = table.cell(column);
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool is_number = error == std::errc() && end == text.data() + text.size();
  if (!is_number || !std::isfinite(value) || value < 0)
    throw BadLine(fmt::format("{}: {} is '{}', which is not a number from 0 up",
                              table.where(column),
                              table.columns()[static_cast<std::size_t>(column)], excerpt(text)));
  constexpr double kMost = 1e12;
  if (value > kMost)
    throw BadLine(fmt::format("{}: {} is {}, more than a recording can have", table.where(column),
                              table.columns()[static_cast<std::size_t>(column)], excerpt(text)));
  return value;
}

Manifest::Span SpanColumns::take(const TableReader& table) const {
  Manifest::Span span;
  if (!table.cell(start_).empty()) span.start = number(table, start_);
  if (table.cell(end_).empty()) return span;
  span.end = number(table, end_);
  if (is_duration_) span.end = end_of_span(span.start, span.end);
  if (span.end <= span.start)
    throw BadLine(
        fmt::format("{}: the utterance ends at {}, and starts at {}; an empty {} is "
                    "the end of the recording",
                    table.where(end_), span.end, span.start, is_duration_ ? "duration" : "end"));
  return span;
}

ChannelColumn::ChannelColumn(const ColumnsAre& are, TableReader& table, const std::string& path)
    : first_(are.has("channel_from_0") ? 0 : 1) {
  const char* const name = first_ == 0 ? "channel_from_0" : "channel";
  if (are.has(name)) column_ = mapped_column(table, path, name, are);
}

std::string ChannelColumn::path_of(std::string_view path, const TableReader& table) const {
  if (column_ < 0 || table.cell(column_).empty()) return std::string(path);
  const std::string& text = table.cell(column_);
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number < first_ ||
      number - first_ >= FileChannel::kMost)
    throw BadLine(fmt::format(
        "{}: the channel is '{}', which is not a number from {} to {}{}", table.where(column_),
        excerpt(text), first_, first_ + FileChannel::kMost - 1,
        text == "0" && first_ == 1 ? "; where channels are counted from 0, write channel_from_0"
                                   : ""));
  return channel_path(path, number - first_ + 1);
}

LabelColumns::LabelColumns(const FileListOptions& options, TableReader& table, std::string path,
                           bool with_labels, Renamed renamed)
    : options_(options), path_(std::move(path)), renamed_(std::move(renamed)) {
  const auto column = [&](const std::string& name, const char* option) {
    const int mapped = mapped_column(table, path_, name, options.table.columns_are);
    return mapped >= 0 ? mapped : require_column(table, path_, name, option);
  };
  if (with_labels) {
    label_ = mapped_column(table, path_, "label", options.table.columns_are);
    if (label_ < 0)
      throw RunError(fmt::format(
          "{}: there is no column 'label', which labels: {} asks for; it has {}; name "
          "the column with the labels by columns_are: {{label: COLUMN}}{}",
          path_, options.labels == Labels::file ? "file" : "manifest",
          names_text("label", table.columns()), did_you_mean("label", table.columns())));
  }
  for (const std::string& t : options.targets) targets_.push_back(column(t, "targets"));
  for (const auto& [name, rule] : options.columns.list)
    texts_.push_back(NameRule::is_column(rule) ? column(rule, "columns") : -1);
  has_text_.resize(texts_.size());
}

std::vector<int> LabelColumns::columns() const {
  std::vector<int> out = targets_;
  out.insert(out.end(), texts_.begin(), texts_.end());
  if (label_ >= 0) out.push_back(label_);
  return out;
}

void LabelColumns::take(const TableReader& table, Manifest& manifest, std::size_t file) {
  ++rows_;
  if (label_ >= 0) {
    require_text(table, label_);
    take_labels(table.cell(label_), manifest, file);
  }
  for (std::size_t t = 0; t < targets_.size(); ++t) {
    const std::string& text = table.cell(targets_[t]);
    if (text.empty()) continue;
    float value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size())
      throw BadLine(
          fmt::format("{}: {} is '{}', which is not a number; leave the cell empty where no "
                      "number is known, or leave the column out of targets",
                      table.where(targets_[t]), options_.targets[t], text));
    manifest.set_target(file, t, value);
  }
  for (std::size_t t = 0; t < texts_.size(); ++t)
    if (texts_[t] >= 0) take_text(table, t, manifest, file);
}

// A line of JSON is UTF-8, whatever bytes it escapes, so that it alone is wrong.
void LabelColumns::require_text(const TableReader& table, int column) const {
  const std::string& text = table.cell(column);
  const auto [path, line] = table.place(column);
  if (!is_json_lines(path) || is_utf8(text)) return require_utf8(text, std::string(path), line);
  throw BadLine(
      fmt::format("{}: {} has the bytes of other text than UTF-8 (\\udc80 to \\udcff), which "
                  "only a path may",
                  table.where(column), table.columns()[static_cast<std::size_t>(column)]));
}

void LabelColumns::take_text(const TableReader& table, std::size_t text, Manifest& manifest,
                             std::size_t file) {
  require_text(table, texts_[text]);
  std::string cell = table.cell(texts_[text]);
  for (std::size_t at; (at = cell.find(JsonLinesReader::kListSeparator)) != cell.npos;)
    cell.replace(at, 1, ", ");
  manifest.set_text(file, text, cell);
  if (!cell.empty()) has_text_[text] = true;
}

std::string LabelColumns::remark() const {
  std::vector<std::string> empty;
  for (std::size_t t = 0; t < texts_.size(); ++t)
    if (texts_[t] >= 0 && !has_text_[t]) empty.push_back(options_.columns.list[t].name);
  if (rows_ == 0 || empty.empty()) return "";
  return fmt::format("{}: columns: {} {} empty in every line", path_, fmt::join(empty, ", "),
                     empty.size() == 1 ? "is" : "are");
}

void LabelColumns::take_labels(const std::string& text, Manifest& manifest, std::size_t file) {
  std::string_view rest = text;
  const bool is_list = text.find(JsonLinesReader::kListSeparator) != text.npos;
  if (!is_list && options_.label_separator.empty()) {
    if (!text.empty()) manifest.set_label(file, renamed_(text));
    return;
  }
  static constexpr char kOfList[] = {JsonLinesReader::kListSeparator, '\0'};
  const std::string_view separator = is_list ? kOfList : std::string_view(options_.label_separator);
  names_.clear();
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find(separator), rest.size());
    if (end > 0) names_.push_back(renamed_(rest.substr(0, end)));
    rest.remove_prefix(std::min(end + separator.size(), rest.size()));
  }
  manifest.set_labels(file, names_);
}

}  // namespace melflow
