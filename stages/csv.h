// Reads a comma-separated file with a header line (RFC 4180: quotes, doubled quotes, line breaks
// inside quotes).
#pragma once

#include <fstream>
#include <string>
#include <string_view>
#include <vector>

namespace melflow {

class CsvReader {
 public:
  /// Throws RunError when the file cannot be read or lacks one of the `required` columns.
  CsvReader(const std::string& path, const std::vector<std::string>& required);
  /// False at the end. Throws RunError with file and line for a row of the wrong length.
  bool next();
  /// -1 when there is no such column.
  [[nodiscard]] int column(std::string_view name) const;
  [[nodiscard]] const std::string& cell(int column) const {
    return row_[static_cast<std::size_t>(column)];
  }
  [[nodiscard]] const std::string& cell(std::string_view name) const { return cell(column(name)); }
  /// Of the row last read, from 1.
  [[nodiscard]] int line() const { return line_; }

 private:
  bool read_row(std::vector<std::string>& row);
  std::string path_;
  std::ifstream in_;
  std::vector<std::string> header_, row_;
  int line_ = 0, next_line_ = 1;
};

}  // namespace melflow
