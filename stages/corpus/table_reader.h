// Rows of a table in a text file, whatever its format: cells by column.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace melflow {

class TableReader {
 public:
  TableReader() = default;
  TableReader(const TableReader&) = delete;
  TableReader& operator=(const TableReader&) = delete;
  virtual ~TableReader() = default;

  /// False at the end. Throws RunError, with file and line, for a row that is none.
  virtual bool next() = 0;
  /// Of all columns that were seen so far, in their order; columns beyond those that column() knows
  /// cannot be read.
  [[nodiscard]] virtual const std::vector<std::string>& columns() const = 0;
  /// -1 when there is no such column.
  [[nodiscard]] virtual int column(std::string_view name) const = 0;
  /// Of the row last read; empty where it has nothing there.
  [[nodiscard]] virtual const std::string& cell(int column) const = 0;
  [[nodiscard]] const std::string& cell(std::string_view name) const { return cell(column(name)); }
  /// Of the row last read, from 1.
  [[nodiscard]] virtual int line() const = 0;
};

/// By the ending, in any case: .csv, .tsv, .jsonl (or .ndjson).
bool is_table(std::string_view path);
/// Throws RunError when the file cannot be read or lacks one of the `required` columns.
std::unique_ptr<TableReader> open_table(const std::string& path,
                                        const std::vector<std::string>& required);

}  // namespace melflow
