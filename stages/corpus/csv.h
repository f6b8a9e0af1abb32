// Reads a table of cells separated by commas or another character, with a header line (RFC 4180:
// quotes, doubled quotes, line breaks inside quotes).
#pragma once

#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "stages/corpus/table_reader.h"

namespace melflow {

class CsvReader final : public TableReader {
 public:
  /// Throws RunError when the file cannot be read or lacks one of the `required` columns.
  CsvReader(const std::string& path, const std::vector<std::string>& required,
            char separator = ',');
  /// As TableReader::next(); throws RunError also for a row with another number of cells than the
  /// header has.
  bool next() override;
  [[nodiscard]] const std::vector<std::string>& columns() const override { return header_; }
  [[nodiscard]] int column(std::string_view name) const override;
  [[nodiscard]] const std::string& cell(int column) const override {
    return row_[static_cast<std::size_t>(column)];
  }
  using TableReader::cell;
  [[nodiscard]] int line() const override { return line_; }

 private:
  [[nodiscard]] std::string advice_on(const std::string& name) const;
  bool read_row(std::vector<std::string>& row);
  std::string path_;
  std::ifstream in_;
  std::vector<std::string> header_, row_;
  char separator_;
  int line_ = 0, next_line_ = 1;
};

}  // namespace melflow
