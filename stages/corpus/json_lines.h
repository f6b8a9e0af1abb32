// Reads a file with a JSON object a line. The columns are the names in the first object.
#pragma once

#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "stages/corpus/table_reader.h"

namespace melflow {

class JsonLinesReader final : public TableReader {
 public:
  /// Between the items of a list in one cell.
  static constexpr char kListSeparator = '\x1F';

  /// Throws RunError when the file cannot be read, its first line is no object, or that lacks one
  /// of the `required` names.
  JsonLinesReader(const std::string& path, const std::vector<std::string>& required);

  /// A number is the text that it was written as or the shortest that reads back; null and a name
  /// that is missing are an empty cell. Names that the first object does not have cannot be read.
  bool next() override;
  [[nodiscard]] const std::vector<std::string>& columns() const override { return names_; }
  [[nodiscard]] int column(std::string_view name) const override;
  [[nodiscard]] const std::string& cell(int column) const override {
    return row_[static_cast<std::size_t>(column)];
  }
  using TableReader::cell;
  [[nodiscard]] int line() const override { return line_; }

 private:
  bool read_line();
  void parse();

  std::string path_;
  std::ifstream in_;
  std::string text_;
  std::vector<std::string> names_;  // those of the first object first
  std::vector<std::string> row_;    // its cells
  int line_ = 0;
  bool is_waiting_ = false;  // the first object, until next() gives it
};

}  // namespace melflow
