// Reads the rows of a table in a text file of any supported format, cell by cell.
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

  /// Reads the next row; false at the end. Throws RunError, with file and line, for an invalid row.
  virtual bool next() = 0;
  /// The names of all columns seen so far, in their order. Only the cells of columns that column()
  /// finds can be read.
  [[nodiscard]] virtual const std::vector<std::string>& columns() const = 0;
  /// The number of a column, from 0; -1 when there is no such column.
  [[nodiscard]] virtual int column(std::string_view name) const = 0;
  /// A cell of the row last read; "" where the row has nothing there.
  [[nodiscard]] virtual const std::string& cell(int column) const = 0;
  [[nodiscard]] const std::string& cell(std::string_view name) const { return cell(column(name)); }
  /// The line in the file of the row last read, from 1.
  [[nodiscard]] virtual int line() const = 0;
};

/// The number of the column that an option asks for. `path`: of the table. Throws RunError, with the
/// columns that there are, when there is none of that name.
int column_for(const TableReader& table, const std::string& path, const std::string& name,
               const char* option);
/// Whether the path ends in .csv, .tsv, .jsonl or .ndjson, in upper or lower case, or is a
/// `segments` file of Kaldi.
bool is_table(std::string_view path);
/// Opens a table in the format that its name says. Throws RunError when the file cannot be read
/// or lacks one of the `required` columns.
std::unique_ptr<TableReader> open_table(const std::string& path,
                                        const std::vector<std::string>& required);

}  // namespace melflow
