#include "stages/corpus/json_lines.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "pipeline/problem.h"
#include "pipeline/text.h"

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
    : lines_(path) {
  if (!read_line()) throw RunError(path + ": this file is empty, a JSON object a line is expected");
  parse();
  is_waiting_ = true;
  for (const std::string& name : required)
    if (column(name) < 0)
      throw RunError(fmt::format("{}:{}: there is no '{}'; the object has {}", path, line(), name,
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
  while (lines_.next(text_))
    if (text_.find_first_not_of(" \t") != std::string::npos) return true;
  return false;
}

void JsonLinesReader::parse() {
  const auto bad = [this](const std::string& why) {
    return BadLine(fmt::format("{}:{}: {}", lines_.path(), line(), why));
  };
  for (std::string& cell : row_) cell.clear();
  require_utf8(text_, lines_.path(), line());
  const OrderedJson object = OrderedJson::parse(text_, nullptr, false);
  if (!object.is_object()) throw bad("this is not a JSON object; one per line is expected");
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
    } else if (!to_cell(*it, row_[i])) {
      row_[i].clear();
      wrong = names_[i];
    }
  }
  if (!wrong.empty())
    throw bad(fmt::format("'{}' is neither text, a number nor a list of these", excerpt(wrong)));
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
