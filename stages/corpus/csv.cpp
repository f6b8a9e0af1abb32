#include "stages/corpus/csv.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "pipeline/problem.h"

namespace melflow {

CsvReader::CsvReader(const std::string& path, const std::vector<std::string>& required,
                     char separator)
    : path_(path), in_(path, std::ios::binary), separator_(separator) {
  if (!in_) throw RunError(fmt::format("{}: cannot be read: {}", path, std::strerror(errno)));
  if (!read_row(header_)) throw RunError(path + ": this file is empty, a header line is expected");
  if (header_.front().starts_with("\xEF\xBB\xBF")) header_.front().erase(0, 3);
  for (const std::string& name : required)
    if (column(name) < 0)
      throw RunError(fmt::format("{}:1: there is no column '{}'; the header has {}{}", path, name,
                                 fmt::join(header_, ", "), advice_on(name)));
}

std::string CsvReader::advice_on(const std::string& name) const {
  const bool is_one =
      header_.size() == 1 && header_.front().find_first_of(";\t,") != std::string::npos;
  return is_one ? "; columns of a .csv are separated by commas, those of a .tsv by tabs"
                : did_you_mean(name, header_);
}

int CsvReader::column(std::string_view name) const {
  const auto it = std::find(header_.begin(), header_.end(), name);
  return it == header_.end() ? -1 : static_cast<int>(it - header_.begin());
}

bool CsvReader::next() {
  do {
    if (!read_row(row_)) return false;
  } while (row_.size() == 1 && row_.front().empty());
  if (row_.size() != header_.size())
    throw RunError(
        fmt::format("{}:{}: {} cell{}, but the header has {}; put a cell with commas in quotes, "
                    "and keep the comma of an empty cell",
                    path_, line_, row_.size(), row_.size() == 1 ? "" : "s", header_.size()));
  return true;
}

bool CsvReader::read_row(std::vector<std::string>& row) {
  row.assign(1, "");
  line_ = next_line_;
  bool quoted = false, any = false;
  for (int c = in_.get(); c != EOF; c = in_.get()) {
    any = true;
    if (quoted) {
      if (c == '\n') ++next_line_;
      if (c != '"')
        row.back() += static_cast<char>(c);
      else if (in_.peek() == '"')
        row.back() += static_cast<char>(in_.get());
      else
        quoted = false;
    } else if (c == '"' && row.back().empty()) {
      quoted = true;
    } else if (c == separator_) {
      row.emplace_back();
    } else if (c == '\n') {
      ++next_line_;
      return true;
    } else if (c != '\r') {
      row.back() += static_cast<char>(c);
    }
  }
  if (in_.bad()) throw RunError(fmt::format("{}: cannot be read: {}", path_, std::strerror(errno)));
  if (quoted) throw RunError(fmt::format("{}:{}: a quote is not closed", path_, line_));
  return any;
}

}  // namespace melflow
