#include "stages/corpus/json_lines.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "pipeline/base/problem.h"
#include "pipeline/base/text.h"
#include "stages/shallow_json.h"

namespace melflow {
namespace {

using OrderedJson = nlohmann::ordered_json;

// Makes the text of a cell, "" for null; false for a value that no cell can hold.
bool to_cell(const OrderedJson& value, std::string& out) {
  out.clear();
  if (value.is_null()) return true;
  if (value.is_string()) return out = value.get<std::string>(), true;
  if (value.is_number() || value.is_boolean()) return out = value.dump(), true;
  if (!value.is_array()) return false;
  for (const OrderedJson& item : value) {
    std::string text;
    if (item.is_array() || !to_cell(item, text)) return false;
    if (!out.empty()) out += JsonLinesReader::kListSeparator;
    out += text;
  }
  return true;
}

// Makes the text of a cell. Returns the problem with the value, or null.
const char* problem_of(const OrderedJson& value, std::string& cell) {
  if (!to_cell(value, cell)) return "is neither text, a number nor a list of these";
  return cell.find('\0') == cell.npos ? nullptr
                                      : "has a zero byte, which cannot be stored; take it out";
}

}  // namespace

std::string json_value(std::string_view object, std::string_view name, std::string& out) {
  const OrderedJson parsed = parse_shallow<OrderedJson>(object);
  if (!parsed.is_object()) return "is no JSON object";
  const auto it = parsed.find(name);
  if (it == parsed.end()) return {};
  const char* problem = problem_of(*it, out);
  return problem == nullptr ? "" : fmt::format("has a '{}' which {}", excerpt(name), problem);
}

JsonLinesReader::JsonLinesReader(const std::string& path, const std::vector<std::string>& required)
    : lines_(path), required_(required) {
  if (!read_line()) throw RunError(path + ": this file is empty, a JSON object a line is expected");
  problem_ = parse();
  if (names_.empty() && !problem_.empty()) throw RunError(problem_);
  is_waiting_ = true;
  for (const std::string& name : required)
    if (find_column(name) < 0)
      throw RunError(fmt::format("{}:{}: there is no '{}'; the object has {}{}", path, line(), name,
                                 fmt::join(names_, ", "), path_column_advice(name, names_)));
}

// The name by which the objects have a column.
std::string_view JsonLinesReader::name_of(std::string_view column) const {
  const auto has = [this](std::string_view n) {
    return std::find(names_.begin(), names_.end(), n) != names_.end();
  };
  constexpr std::string_view kPathOfNemo = "audio_filepath";
  if (has("path") || !has(kPathOfNemo) || has(column)) return column;
  return column == "path" ? kPathOfNemo : column == "start" ? "offset" : column;
}

int JsonLinesReader::column(std::string_view column) const {
  const auto it = std::find(names_.begin(), names_.end(), name_of(column));
  const auto at = static_cast<std::size_t>(it - names_.begin());
  return at < row_.size() ? static_cast<int>(at) : -1;
}

bool JsonLinesReader::is_in_file(std::string_view name) const {
  if (std::error_code error; !std::filesystem::is_regular_file(lines_.path(), error)) return false;
  const std::string quoted = fmt::format("\"{}\"", name);
  TextLines lines(lines_.path());
  for (std::string line; lines.next(line);)
    if (line.find(quoted) != line.npos) {
      const OrderedJson object = parse_shallow<OrderedJson>(line);
      if (object.is_object() && object.contains(name)) return true;
    }
  return false;
}

int JsonLinesReader::find_column(std::string_view column) {
  const std::string_view name = name_of(column);
  if (const int at = this->column(name); at >= 0 || !is_waiting_ || !is_in_file(name)) return at;
  names_.emplace_back(name);
  row_.emplace_back();
  missing_.emplace_back().add(std::to_string(line()));
  return this->column(name);
}

bool JsonLinesReader::next() {
  std::string problem;
  if (is_waiting_) {
    is_waiting_ = false;
    problem = std::move(problem_);
  } else {
    if (!read_line()) return false;
    problem = parse();
  }
  if (!problem.empty()) throw BadLine(problem);
  return true;
}

// Reads the next line that is not blank; false at the end.
bool JsonLinesReader::read_line() {
  while (lines_.next(text_))
    if (text_.find_first_not_of(" \t") != std::string::npos) return true;
  return false;
}

// Reads the cells of the line. Returns the problem with the line, or "".
std::string JsonLinesReader::parse() {
  const auto bad = [this](const std::string& why) {
    return fmt::format("{}:{}: {}", lines_.path(), line(), why);
  };
  for (std::string& cell : row_) cell.clear();
  require_utf8(text_, lines_.path(), line());
  const OrderedJson object = parse_shallow<OrderedJson>(text_);
  if (!object.is_object())
    return bad(std::string("this is not a JSON object; one per line is expected") +
               (text_.starts_with('[') ? " (jq -c '.[]' writes a list so)" : ""));
  const bool is_first = names_.empty();
  for (const auto& [name, value] : object.items())
    if (std::find(names_.begin(), names_.end(), name) == names_.end()) names_.push_back(name);
  if (is_first) {
    row_.resize(names_.size());
    missing_.resize(names_.size());
  }
  ++objects_;
  std::string wrong;
  for (std::size_t i = 0; i < row_.size(); ++i) {
    const auto it = object.find(names_[i]);
    if (it == object.end()) {
      missing_[i].add(std::to_string(line()));
      continue;
    }
    const char* const why = problem_of(*it, row_[i]);
    const bool is_list =
        it->is_array() && std::any_of(required_.begin(), required_.end(),
                                      [&](const auto& name) { return name_of(name) == names_[i]; });
    if (why == nullptr && !is_list) continue;
    row_[i].clear();
    wrong =
        bad(fmt::format("'{}' {}", excerpt(names_[i]),
                        why != nullptr ? why : "is a list; write a line for each of its items"));
  }
  return wrong;
}

std::vector<std::string> JsonLinesReader::remarks(const std::vector<int>& used) const {
  std::vector<std::string> out;
  for (std::size_t i = 0; i < missing_.size(); ++i)
    if (missing_[i].count() > 0 &&
        std::find(used.begin(), used.end(), static_cast<int>(i)) != used.end())
      out.push_back(fmt::format("{}: {} of {} lines have no '{}' ({} {}); it is empty there",
                                lines_.path(), missing_[i].count(), objects_, excerpt(names_[i]),
                                missing_[i].count() == 1 ? "line" : "lines", missing_[i].first()));
  return out;
}

}  // namespace melflow
