// The columns of a table that have labels, numbers and texts for files.
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
  /// Throws RunError where a column is missing. Without `with_labels` numbers and texts only.
  LabelColumns(const FileListOptions& options, const TableReader& table, std::string path,
               bool with_labels);
  /// What the row at hand says of the file. Throws RunError for a target that is no number and a
  /// text that cannot be stored.
  void take(const TableReader& table, Manifest& manifest, std::size_t file);
  /// Numbers of the columns that are read.
  [[nodiscard]] std::vector<int> columns() const;

 private:
  void take_text(const TableReader& table, std::size_t text, Manifest& manifest,
                 std::size_t file) const;
  void take_labels(const std::string& text, Manifest& manifest, std::size_t file);

  const FileListOptions& options_;
  std::string path_;
  int label_ = -1;  // none is wanted
  std::vector<int> targets_;
  std::vector<int> texts_;  // of each of the options' columns, -1 for what is no column of a table
  std::vector<std::string_view> names_;
};

}  // namespace melflow
