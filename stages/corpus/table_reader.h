// Reads the rows of a table in a text file of any supported format, cell by cell. A new format is a
// TableReader, chosen by open_table() and known to is_table() (README.md).
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "pipeline/base/problem.h"
#include "stages/corpus/table_format.h"
#include "stages/declared_audio.h"

namespace melflow {

/// Reports a line that cannot be used, with file and line. The lines after it can be read.
class BadLine : public RunError {
 public:
  using RunError::RunError;
};

/// What file_list reads by name are the columns of ColumnsAre::kRoles. A constructor throws
/// RunError where the file cannot be read, or lacks one of the columns that are required.
class TableReader {
 public:
  TableReader() = default;
  TableReader(const TableReader&) = delete;
  TableReader& operator=(const TableReader&) = delete;
  virtual ~TableReader() = default;

  /// Reads the next row; false at the end. Throws BadLine for a row that is invalid as a whole,
  /// whose known cells can still be read; RunError where the rows after it cannot be read either.
  virtual bool next() = 0;
  /// The names of all columns seen so far, in their order. Only the cells of columns that column()
  /// finds can be read.
  [[nodiscard]] virtual const std::vector<std::string>& columns() const = 0;
  /// The number of a column, from 0; -1 when there is no such column.
  [[nodiscard]] virtual int column(std::string_view name) const = 0;
  /// Like column(), but before the first next() it also finds a name that only later rows have.
  [[nodiscard]] virtual int find_column(std::string_view name) { return column(name); }
  /// A cell of the row last read; "" where the row has nothing there. Throws BadLine where what the
  /// row has there is no text, so that only cells that are read can fail a row.
  [[nodiscard]] virtual const std::string& cell(int column) const = 0;
  [[nodiscard]] const std::string& cell(std::string_view name) const { return cell(column(name)); }
  /// A line of a file, from 1.
  struct Place {
    std::string_view path;
    int line = 0;
  };
  /// Where the row last read is or, with a `column`, that cell of it, which may come from another
  /// file.
  static constexpr int kRow = -1;
  [[nodiscard]] virtual Place place(int column) const = 0;
  [[nodiscard]] int line() const { return place(kRow).line; }
  /// The id of that row, in tables that have one; "" in others.
  [[nodiscard]] virtual std::string_view id() const { return {}; }
  /// The same for a message: "data/segments:3: u1".
  [[nodiscard]] std::string where(int column = kRow) const;
  /// What the table says of the audio of that row's recording. `by_parts`: rows are parts of
  /// recordings.
  [[nodiscard]] virtual DeclaredAudio declared(bool /*by_parts*/) const { return {}; }
  /// Whether all tables of this kind have the same columns, so that the user need not be told of
  /// unused ones.
  [[nodiscard]] virtual bool has_fixed_columns() const { return false; }
  /// Returns warnings about the rows that were read. `used`: the numbers of the columns whose cells
  /// are used.
  [[nodiscard]] virtual std::vector<std::string> remarks(const std::vector<int>& used) const = 0;

 protected:
  /// A length [s]; 0 for what is none.
  [[nodiscard]] static double seconds_in(std::string_view text);
};

/// Counts the rows without a cell in a column.
class MissingCells {
 public:
  void add(std::string_view name);
  [[nodiscard]] std::size_t count() const { return count_; }
  /// The names of the first such rows: "u2, u4, u7, ...".
  [[nodiscard]] std::string first() const;

 private:
  std::size_t count_ = 0;
  std::vector<std::string> first_;
};

/// Returns the number of the column that an option names. `path`: the path of the table. Throws
/// RunError, listing the existing columns, when there is none of that name.
int require_column(TableReader& table, const std::string& path, const std::string& name,
                   const char* option);
/// Returns the number of the column that file_list calls `name`; columns_are may map it to another
/// column of the table. -1 if there is none. Throws RunError as require_column() does, if
/// columns_are names a column that the table lacks.
int mapped_column(TableReader& table, const std::string& path, const std::string& name,
                  const ColumnsAre& are);
/// Returns advice if the column of paths, `missing`, is not there, but a column that other tools
/// use for paths is: "; where file_name has the paths, write ..."; else "".
std::string path_column_advice(std::string_view missing, const std::vector<std::string>& columns);
/// Whether the name of a file says that it is a table: it ends in .csv, .tsv, .jsonl, .ndjson or
/// .json, in upper or lower case and with or without .gz, or is a data folder of Kaldi.
bool is_table(std::string_view path);
/// Whether the name says that the table has cells with a delimiter between them.
bool has_separators(std::string_view path);
/// Whether the name says that the table is lines of JSON.
bool is_json_lines(std::string_view path);
/// Opens a table in the format that `format` and its name say. Throws RunError when the file cannot
/// be read or lacks one of the `required` columns (by their names here, as in ColumnsAre).
/// `folder`: that of the table (folder_of_list()), for which {folder} stands in templates.
std::unique_ptr<TableReader> open_table(const std::string& path,
                                        const std::vector<std::string>& required,
                                        const TableFormat& format = {},
                                        const std::string& folder = "");
/// A table as TableFormat::columns_are names its columns. `folder`: what {folder} stands for.
std::unique_ptr<TableReader> with_mapped_columns(std::unique_ptr<TableReader> table,
                                                 const TableFormat& format,
                                                 const std::string& folder);

}  // namespace melflow
