// Reads a file with one JSON object per line. The columns are the names in the first object, and
// those requested names that a later object has; in a manifest of NeMo, the columns path and start
// are audio_filepath and offset.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "stages/corpus/table_reader.h"
#include "stages/corpus/text_lines.h"

namespace melflow {

/// Makes the text of a value of a JSON object, as of a cell of JsonLinesReader; "" where there is
/// none of that name. Returns the problem, or "".
std::string json_value(std::string_view object, std::string_view name, std::string& out);

/// The value that an object has for a name.
struct JsonCell {
  std::string text;
  bool is_list = false;
  const char* problem = nullptr;  ///< why it cannot be read
};

class JsonLinesReader final : public TableReader {
 public:
  /// Separates the items of a list in one cell.
  static constexpr char kListSeparator = '\x1F';

  /// Throws RunError when the file cannot be read, its first line is no object, or that object
  /// lacks one of the `required` names.
  JsonLinesReader(const std::string& path, const std::vector<std::string>& required);

  /// Reads a row, as TableReader::next() does. A line that is no object is a BadLine.
  bool next() override;
  [[nodiscard]] const std::vector<std::string>& columns() const override { return names_; }
  [[nodiscard]] int column(std::string_view column) const override;
  /// Also finds a name that only later objects have, where the file can be read twice.
  [[nodiscard]] int find_column(std::string_view column) override;
  /// As TableReader::cell(); a BadLine if the value is an object, contains a zero byte or, in a
  /// `required` column, is a list. The cell of an integer has all digits, that of another number
  /// the shortest text that reads back as it; null, NaN and a missing name make an empty cell.
  [[nodiscard]] const std::string& cell(int column) const override;
  using TableReader::cell;
  [[nodiscard]] Place place(int) const override { return {lines_.path(), lines_.number()}; }
  /// The duration in a line of NeMo without an offset; with an offset it is that of the part.
  [[nodiscard]] DeclaredAudio declared(bool by_parts) const override;
  /// Remarks on lines that lack a name which the first object has.
  [[nodiscard]] std::vector<std::string> remarks(const std::vector<int>& used) const override;

 private:
  [[nodiscard]] int number_of(std::string_view name) const;
  [[nodiscard]] std::string_view name_of(std::string_view column) const;
  bool read_line();
  [[nodiscard]] bool is_in_file(std::string_view name) const;
  [[nodiscard]] std::string parse();

  TextLines lines_;
  std::vector<std::string> required_;
  std::string text_;
  std::vector<std::string> names_;  // names of the columns, and of those whose cells are not kept
  std::unordered_map<std::string, int> numbers_;  // their places in names_
  std::vector<JsonCell> row_;                     // cells of the row last read
  std::vector<std::size_t> last_;                 // the last object with the cell, by column
  std::vector<MissingCells> missing_;             // lines without a cell, by column
  std::size_t objects_ = 0;
  // Of the row last read: values that a line of NeMo may have although the first line lacks them.
  JsonCell late_offset_, late_duration_;
  bool is_waiting_ = false;  // the first object is still to be returned by next()
  std::string problem_;      // of the first object, until next() reports it
};

}  // namespace melflow
