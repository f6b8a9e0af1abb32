// Reads the labels, target numbers and texts of files from the columns of a table.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "stages/corpus/file_list_options.h"
#include "stages/corpus/table_reader.h"
#include "stages/manifest.h"

namespace melflow {

class LabelColumns {
 public:
  /// `with_labels` false: reads targets and texts only. Throws RunError when a column is missing.
  LabelColumns(const FileListOptions& options, TableReader& table, std::string path,
               bool with_labels);
  /// Stores labels, targets and texts of the table's present row for the file. Throws BadLine for
  /// a target that is no number; RunError for a text that is not
  /// UTF-8.
  void take(const TableReader& table, Manifest& manifest, std::size_t file);
  /// The numbers, from 0, of the columns that take() reads.
  [[nodiscard]] std::vector<int> columns() const;

 private:
  void take_text(const TableReader& table, std::size_t text, Manifest& manifest,
                 std::size_t file) const;
  void take_labels(const std::string& text, Manifest& manifest, std::size_t file);

  const FileListOptions& options_;
  std::string path_;
  int label_ = -1;  // number of the label's column; -1: labels are not read
  std::vector<int> targets_;
  std::vector<int> texts_;  // of each of the options' columns, -1 for what is no column of a table
  std::vector<std::string_view> names_;
};

}  // namespace melflow
