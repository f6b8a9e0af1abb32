#include "stages/corpus/csv.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "pipeline/base/near_names.h"
#include "pipeline/base/problem.h"
#include "pipeline/base/text.h"

namespace melflow {
namespace {

constexpr const char* kPlainQuotes =
    "where quotes are characters of the texts, write quoting: none in the file_list node";

}  // namespace

CsvReader::CsvReader(const std::string& path, const std::vector<std::string>& required,
                     const TableFormat& format)
    : lines_(path),
      header_(format.header),
      separator_(format.delimiter),
      comment_(format.comment),
      has_quotes_(format.quoting == Quoting::csv ||
                  (format.quoting == Quoting::automatic &&
                   (separator_.starts_with(',') || separator_.starts_with(';')))) {
  if (!header_.empty() && header_.back().ends_with(TableFormat::kRest)) {
    has_rest_ = true;
    header_.back().resize(header_.back().size() - std::string_view(TableFormat::kRest).size());
  }
  if (header_.empty() && !read_row(header_))
    throw RunError(path + ": this file is empty, a header line is expected");
  for (const std::string& name : required)
    if (column(name) < 0 && !format.header.empty())
      throw RunError(fmt::format("{}: there is no column '{}'; header names {}{}", path,
                                 excerpt(name), names_text(name, header_),
                                 did_you_mean(name, header_)));
    else if (column(name) < 0)
      throw RunError(
          fmt::format("{}:{}: there is no column '{}'; {}", path, line_, name,
                      advice_on(name, excerpt(fmt::format("{}", fmt::join(header_, ", "))))));
  row_.resize(header_.size());
}

// Advice for a missing column: other separators, other quotes, or another name.
std::string CsvReader::advice_on(const std::string& name, const std::string& header) const {
  for (const char other : {'\t', '|', ';', ','}) {
    const bool is_likely = header_.size() == 1 || other == '\t' || other == '|';
    if (separator_.starts_with(other) || !is_likely || text_.find(other) == text_.npos) continue;
    return fmt::format(
        "the first line is '{}', with {} between its cells; write delimiter: {} and, where the "
        "first line is no header, the names of the columns as header: [...]",
        excerpt(text_), other == '\t' ? "tabs" : fmt::format("'{}'", other),
        other == '\t' ? R"("\t")" : fmt::format("'{}'", other));
  }
  if (!has_quotes_ && header_.front().starts_with('"'))
    return fmt::format("the header has {}; where cells are in quotes, write quoting: csv", header);
  std::string advice = path_column_advice(name, header_);
  if (advice.empty()) advice = did_you_mean(name, header_);
  const bool is_like_row = header.find_first_of("/0123456789") != header.npos;
  if (advice.empty() && is_like_row)
    advice = "; where that is the first row, name the columns: header: [NAME, ...]";
  return fmt::format("the header has {}{}", header, advice);
}

int CsvReader::column(std::string_view name) const {
  const auto it = std::find(header_.begin(), header_.end(), name);
  return it == header_.end() ? -1 : static_cast<int>(it - header_.begin());
}

bool CsvReader::next() {
  do {
    if (!read_row(row_)) return false;
  } while (row_.size() == 1 && row_.front().empty());
  if (has_rest_ && row_.size() > header_.size()) {
    std::string& last = row_[header_.size() - 1];
    for (std::size_t i = header_.size(); i < row_.size(); ++i) last.append(separator_ + row_[i]);
    row_.resize(header_.size());
  }
  if (row_.size() == header_.size()) return true;
  const std::size_t cells = row_.size();
  row_.assign(header_.size(), "");
  throw BadLine(fmt::format("{}:{}: {} cell{}, but the header has {}; {}", lines_.path(), line_,
                            cells, cells == 1 ? "" : "s", header_.size(), cell_advice()));
}

std::string CsvReader::cell_advice() const {
  const std::string name = separator_ == "\t"  ? "tab"
                           : separator_ == "," ? "comma"
                                               : fmt::format("'{}'", separator_);
  if (separator_ == " ") return "write the cells that are missing, or make header shorter";
  if (has_quotes_)
    return fmt::format("put a cell with {0}s in quotes, and keep the {0} of an empty cell", name);
  return fmt::format(
      "keep the {} of an empty cell{}", name,
      text_.find('"') == text_.npos ? "" : ", and where cells are in quotes, write quoting: csv");
}

bool CsvReader::read_row(std::vector<std::string>& row) {
  do {
    if (!lines_.next(text_)) return false;
  } while (!comment_.empty() && text_.starts_with(comment_));
  line_ = lines_.number();
  row.assign(1, "");
  if (separator_ == " ")
    read_words(row);
  else
    has_quotes_ ? read_quoted(row) : read_plain(row);
  if (lines_.number() > line_ && long_rows_++ == 0) {
    first_begin_ = line_;
    first_end_ = lines_.number();
  }
  return true;
}

void CsvReader::read_plain(std::vector<std::string>& row) const {
  std::size_t at = 0;
  for (std::size_t end; (end = text_.find(separator_, at)) != text_.npos;
       at = end + separator_.size()) {
    row.back().assign(text_, at, end - at);
    row.emplace_back();
  }
  row.back().assign(text_, at);
}

void CsvReader::read_words(std::vector<std::string>& row) const {
  constexpr const char* kBlanks = " \t";
  const bool is_header = &row == &header_;
  const std::size_t last = text_.find_last_not_of(kBlanks);
  std::size_t at = text_.find_first_not_of(kBlanks);
  if (at == text_.npos) return;
  row.clear();
  while (at < last + 1) {
    const bool is_rest = !is_header && row.size() + 1 == header_.size();
    const std::size_t end =
        is_rest ? last + 1 : std::min(text_.find_first_of(kBlanks, at), last + 1);
    row.push_back(text_.substr(at, end - at));
    at = std::min(text_.find_first_not_of(kBlanks, end), last + 1);
  }
  if (!is_header && row.size() + 1 == header_.size()) row.emplace_back();  // an empty rest
}

void CsvReader::read_quoted(std::vector<std::string>& row) {
  for (std::size_t at = 0;; ++at) {
    if (at < text_.size() && text_[at] == '"') {
      const int opened = lines_.number();
      for (bool is_open = true; is_open;) {
        const std::size_t quote = text_.find('"', ++at);
        row.back().append(text_, at, quote - at);
        if (quote == text_.npos) {
          row.back().append(lines_.line_end());
          if (!lines_.next(text_))
            throw RunError(
                fmt::format("{}:{}: a quote opens here and is not closed to the end of "
                            "the file (line {}); {}",
                            lines_.path(), opened, lines_.number(), kPlainQuotes));
          at = static_cast<std::size_t>(-1);
          continue;
        }
        at = quote + 1;
        is_open = at < text_.size() && text_[at] == '"';
        if (is_open) row.back() += '"';
      }
      if (at < text_.size() && !std::string_view(text_).substr(at).starts_with(separator_))
        throw RunError(
            fmt::format("{}:{}: text behind a closing quote: {}; double a quote inside a "
                        "cell in quotes (\"\"), or, {}",
                        lines_.path(), lines_.number(), excerpt(text_), kPlainQuotes));
    } else {
      const std::size_t end = std::min(text_.find(separator_, at), text_.size());
      row.back().assign(text_, at, end - at);
      at = end;
    }
    if (at >= text_.size()) return;
    at += separator_.size() - 1;
    row.emplace_back();
  }
}

std::vector<std::string> CsvReader::remarks(const std::vector<int>&) const {
  if (long_rows_ == 0) return {};
  return {fmt::format(
      "{}: {} several lines, as a quote is open at a line's end; the first is lines "
      "{} to {}; {}",
      lines_.path(), long_rows_ == 1 ? "1 row is" : fmt::format("{} rows are", long_rows_),
      first_begin_, first_end_, kPlainQuotes)};
}

}  // namespace melflow
