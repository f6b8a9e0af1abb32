#include "stages/corpus/json_lines.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "pipeline/problem.h"

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

}  // namespace

JsonLinesReader::JsonLinesReader(const std::string& path, const std::vector<std::string>& required)
    : path_(path), in_(path, std::ios::binary) {
  if (!in_) throw RunError(fmt::format("{}: cannot be read: {}", path, std::strerror(errno)));
  if (!read_line()) throw RunError(path + ": this file is empty, a JSON object a line is expected");
  parse();
  is_waiting_ = true;
  for (const std::string& name : required)
    if (column(name) < 0)
      throw RunError(fmt::format("{}:{}: there is no '{}'; the object has {}", path, line_, name,
                                 fmt::join(names_, ", ")));
}

int JsonLinesReader::column(std::string_view name) const {
  const auto it = std::find(names_.begin(), names_.end(), name);
  const auto at = static_cast<std::size_t>(it - names_.begin());
  return at < row_.size() ? static_cast<int>(at) : -1;
}

bool JsonLinesReader::next() {
  if (is_waiting_) {
    is_waiting_ = false;
    return true;
  }
  if (!read_line()) return false;
  parse();
  return true;
}

// Reads the next line that is not blank; false at the end.
bool JsonLinesReader::read_line() {
  while (std::getline(in_, text_)) {
    if (++line_ == 1 && text_.starts_with("\xEF\xBB\xBF")) text_.erase(0, 3);
    if (text_.find_first_not_of(" \t\r") != std::string::npos) return true;
  }
  if (in_.bad()) throw RunError(fmt::format("{}: cannot be read: {}", path_, std::strerror(errno)));
  return false;
}

void JsonLinesReader::parse() {
  const OrderedJson object = OrderedJson::parse(text_, nullptr, false);
  if (!object.is_object())
    throw RunError(
        fmt::format("{}:{}: this is not a JSON object; one per line is expected", path_, line_));
  const bool is_first = names_.empty();
  for (const auto& [name, value] : object.items())
    if (std::find(names_.begin(), names_.end(), name) == names_.end()) names_.push_back(name);
  if (is_first) row_.resize(names_.size());
  for (std::size_t i = 0; i < row_.size(); ++i) {
    const auto it = object.find(names_[i]);
    row_[i].clear();
    if (it != object.end() && !to_cell(*it, row_[i]))
      throw RunError(fmt::format("{}:{}: '{}' is neither text, a number nor a list of these", path_,
                                 line_, names_[i]));
  }
}

}  // namespace melflow
