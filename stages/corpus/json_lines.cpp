#include "stages/corpus/json_lines.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "pipeline/base/near_names.h"
#include "pipeline/base/problem.h"
#include "pipeline/base/text.h"
#include "stages/python_json.h"
#include "stages/shallow_json.h"

namespace melflow {
namespace {

using Json = nlohmann::json;

using Cell = JsonCell;

constexpr std::string_view kPathOfNemo = "audio_filepath";

// Makes cells of the values of an object while it is parsed, so that many names take time in
// proportion to their number. `place` gives the cell for a name, or null where none is wanted.
template <class Place>
class CellReader {
 public:
  /// `is_marked`: whether bytes of texts are marked (python_json.h).
  CellReader(Place place, bool is_marked) : place_(std::move(place)), is_marked_(is_marked) {}
  [[nodiscard]] bool is_object() const { return is_object_; }

  bool null() { return take(""); }
  bool boolean(bool value) { return take(value ? "true" : "false"); }
  bool number_integer(Json::number_integer_t value) { return take(std::to_string(value)); }
  bool number_unsigned(Json::number_unsigned_t value) { return take(std::to_string(value)); }
  bool number_float(double value, const std::string& digits) {
    const bool is_integer = digits.find_first_not_of("-0123456789") == digits.npos;  // of > 64 bits
    return take(is_integer ? digits : Json(value).dump());
  }
  bool string(std::string& value) {
    if (is_marked_) restore_bytes(value);
    return take(value);
  }
  bool binary(const Json::binary_t&) { return false; }
  bool key(const std::string& name) {
    if (depth_ == 1) {
      cell_ = place_(name);
      if (cell_ != nullptr) *cell_ = {};
    }
    return true;
  }
  bool start_object(std::size_t) {
    if (depth_ == 0) is_object_ = true;
    if (depth_ > 0 && depth_ <= 2) refuse();
    ++depth_;
    return true;
  }
  bool start_array(std::size_t) {
    if (depth_ == 0) return false;
    if (depth_ == 1 && cell_ != nullptr) cell_->is_list = true;
    if (depth_ == 2) refuse();
    ++depth_;
    return true;
  }
  bool end_object() { return --depth_, true; }
  bool end_array() { return --depth_, true; }
  static bool parse_error(std::size_t, const std::string&, const std::exception&) { return false; }

 private:
  bool take(std::string_view text) {
    if (depth_ == 0) return false;
    if (cell_ == nullptr || depth_ > (cell_->is_list ? 2 : 1)) return true;
    if (!cell_->text.empty()) cell_->text += JsonLinesReader::kListSeparator;  // of a list
    cell_->text += text;
    if (text.find('\0') != text.npos)
      cell_->problem = "has a zero byte, which cannot be stored; take it out";
    return true;
  }
  void refuse() {
    if (cell_ != nullptr) cell_->problem = "is neither text, a number nor a list of these";
  }

  Place place_;
  const bool is_marked_;
  Cell* cell_ = nullptr;  // of the value that is parsed
  int depth_ = 0;
  bool is_object_ = false;
};

template <class Place>
bool parse_object(std::string_view text, const Place& place, bool is_marked) {
  CellReader<Place> reader(place, is_marked);
  return Json::sax_parse(text.begin(), text.end(), &reader) && reader.is_object();
}

// Reads an object, in standard JSON or Python's; false where it is none.
template <class Place>
bool read_object(std::string_view text, const Place& place) {
  if (is_deep_json(text)) return false;
  if (parse_object(text, place, false)) return true;
  const auto standard = standard_json(text);
  return standard && parse_object(*standard, place, true);
}

}  // namespace

std::string json_value(std::string_view object, std::string_view name, std::string& out) {
  Cell cell;
  const auto place = [&](const std::string& key) { return key == name ? &cell : nullptr; };
  if (!read_object(object, place)) return "is no JSON object";
  if (cell.problem != nullptr)
    return fmt::format("has a '{}' which {}", excerpt(name), cell.problem);
  out = std::move(cell.text);
  return {};
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
                                 names_text(name, names_), path_column_advice(name, names_)));
}

int JsonLinesReader::number_of(std::string_view name) const {
  const auto it = numbers_.find(std::string(name));
  return it == numbers_.end() ? -1 : it->second;
}

// The name by which the objects have a column.
std::string_view JsonLinesReader::name_of(std::string_view column) const {
  if (number_of("path") >= 0 || number_of(kPathOfNemo) < 0 || number_of(column) >= 0) return column;
  return column == "path" ? kPathOfNemo : column == "start" ? "offset" : column;
}

int JsonLinesReader::column(std::string_view column) const {
  const int at = number_of(name_of(column));
  return at < static_cast<int>(row_.size()) ? at : -1;
}

DeclaredAudio JsonLinesReader::declared(bool by_parts) const {
  if (by_parts || name_of("path") != kPathOfNemo) return {};
  const auto number = [this](std::string_view name, const Cell& late) {
    const int at = column(name);
    return seconds_in(at < 0 ? late.text : cell(at));
  };
  if (number("start", late_offset_) > 0) return {};
  return {.seconds = number("duration", late_duration_)};
}

bool JsonLinesReader::is_in_file(std::string_view name) const {
  if (std::error_code error; !std::filesystem::is_regular_file(lines_.path(), error)) return false;
  const std::string quoted = fmt::format("\"{}\"", name);
  TextLines lines(lines_.path());
  for (std::string line; lines.next(line);) {
    if (line.find(quoted) == line.npos) continue;
    bool has = false;
    const auto place = [&](const std::string& key) -> Cell* {
      has = has || key == name;
      return nullptr;
    };
    if (read_object(line, place) && has) return true;
  }
  return false;
}

int JsonLinesReader::find_column(std::string_view column) {
  const std::string_view name = name_of(column);
  if (const int at = this->column(name); at >= 0 || !is_waiting_ || !is_in_file(name)) return at;
  numbers_.emplace(name, static_cast<int>(names_.size()));
  names_.emplace_back(name);
  row_.emplace_back();
  last_.emplace_back();
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
  require_utf8(text_, lines_.path(), line());
  const bool is_first = names_.empty();
  const std::size_t known = names_.size(), object = objects_ + 1;
  const auto forget = [&](std::size_t from) {
    for (std::size_t i = from; i < names_.size(); ++i) numbers_.erase(names_[i]);
    names_.resize(from);
  };
  std::vector<Cell> cells(row_.size());
  late_offset_ = late_duration_ = {};
  const auto place = [&](const std::string& name) -> Cell* {
    const auto [it, is_new] = numbers_.try_emplace(name, static_cast<int>(names_.size()));
    if (is_new) names_.push_back(name);
    const auto at = static_cast<std::size_t>(it->second);
    if (is_first && at >= cells.size()) cells.resize(at + 1), last_.resize(at + 1);
    if (at >= cells.size())
      return name == "offset" ? &late_offset_ : name == "duration" ? &late_duration_ : nullptr;
    last_[at] = object;
    return &cells[at];
  };
  if (!read_object(text_, place)) {
    forget(known);
    row_.assign(row_.size(), {});
    return bad(std::string("this is not a JSON object; one per line is expected") +
               (text_.starts_with('[') ? " (jq -c '.[]' writes a list so)" : ""));
  }
  row_ = std::move(cells);
  missing_.resize(row_.size());
  objects_ = object;
  for (std::size_t i = 0; i < row_.size(); ++i)
    if (last_[i] != object) missing_[i].add(std::to_string(line()));
  return {};
}

const std::string& JsonLinesReader::cell(int column) const {
  const auto i = static_cast<std::size_t>(column);
  const Cell& cell = row_[i];
  const bool is_list =
      cell.is_list && std::any_of(required_.begin(), required_.end(),
                                  [&](const auto& name) { return name_of(name) == names_[i]; });
  if (cell.problem != nullptr || is_list)
    throw BadLine(fmt::format(
        "{}:{}: '{}' {}", lines_.path(), line(), excerpt(names_[i]),
        cell.problem != nullptr ? cell.problem : "is a list; write a line for each of its items"));
  return cell.text;
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
