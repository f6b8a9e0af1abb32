// Reads a table of cells separated by commas or another text, with a header line or given names.
// With quotes it follows RFC 4180 (cells in quotes, doubled quotes, line breaks inside quotes);
// without, a quote is an ordinary character, and every line is a row. If the delimiter is a blank,
// any number of blanks and tabs separates cells, and the last cell has the rest of the line.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "stages/corpus/table_format.h"
#include "stages/corpus/table_reader.h"
#include "stages/corpus/text_lines.h"

namespace melflow {

class CsvReader final : public TableReader {
 public:
  /// Throws RunError when the file cannot be read or lacks one of the `required` columns. The
  /// format's delimiter must be set, and automatic quoting depends on the delimiter.
  CsvReader(const std::string& path, const std::vector<std::string>& required,
            const TableFormat& format = {.delimiter = ","});
  /// Reads a row, as TableReader::next() does. A row whose number of cells differs from the
  /// header's is a BadLine. Throws RunError for a quote that is not closed, or that text follows.
  bool next() override;
  [[nodiscard]] const std::vector<std::string>& columns() const override { return header_; }
  [[nodiscard]] int column(std::string_view name) const override;
  [[nodiscard]] const std::string& cell(int column) const override {
    return row_[static_cast<std::size_t>(column)];
  }
  using TableReader::cell;
  [[nodiscard]] Place place(int) const override { return {lines_.path(), line_}; }
  /// Remarks on rows that span several lines.
  [[nodiscard]] std::vector<std::string> remarks(const std::vector<int>& used) const override;

 private:
  [[nodiscard]] std::string advice_on(const std::string& name, const std::string& header) const;
  [[nodiscard]] std::string cell_advice() const;
  bool read_row(std::vector<std::string>& row);
  void read_quoted(std::vector<std::string>& row);
  void read_plain(std::vector<std::string>& row) const;
  void read_words(std::vector<std::string>& row) const;

  TextLines lines_;
  std::string text_;  // the line last read
  std::vector<std::string> header_, row_;
  std::string separator_, comment_;
  bool has_quotes_;
  bool has_rest_ = false;  // whether the last column has the rest of the line
  int line_ = 0;           // first line of the row last read
  int long_rows_ = 0, first_begin_ = 0,
      first_end_ = 0;  // rows that span several lines; the lines of the first one
};

}  // namespace melflow
