// Reads the part of a recording that each line of a table names.
#pragma once

#include <string>
#include <vector>

#include "stages/corpus/file_list_options.h"
#include "stages/corpus/table_reader.h"
#include "stages/manifest.h"

namespace melflow {

class SpanColumns {
 public:
  /// Throws RunError when a column is missing.
  SpanColumns(const UtteranceColumns& options, TableReader& table, std::string path);
  /// The span of the table's present row. Throws BadLine for what is no number or no
  /// part of a recording.
  [[nodiscard]] Manifest::Span take(const TableReader& table) const;
  /// The numbers, from 0, of the columns that take() reads.
  [[nodiscard]] std::vector<int> columns() const { return {start_, end_}; }

 private:
  [[nodiscard]] double number(const TableReader& table, int column) const;

  const UtteranceColumns& options_;
  std::string path_;
  int start_ = -1, end_ = -1;  // `end_`: of the end or of the duration
};

}  // namespace melflow
