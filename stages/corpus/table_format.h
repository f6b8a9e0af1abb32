// How the tables of a corpus are written, and which of their columns have what: options of
// file_list.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pipeline/base/value.h"
#include "pipeline/options/option_type.h"
#include "pipeline/options/schema.h"

namespace melflow {

/// Whether cells of a table may be in quotes.
enum class Quoting { automatic, none, csv };
template <>
struct EnumNames<Quoting> {
  static constexpr std::pair<const char*, Quoting> values[] = {
      {"auto", Quoting::automatic}, {"none", Quoting::none}, {"csv", Quoting::csv}};
};

/// Where the values of columns come from that a table does not have by these names.
class ColumnsAre {
 public:
  /// The columns that file_list reads by their names.
  static constexpr const char* kRoles[] = {"path", "label",    "split",   "start",
                                           "end",  "duration", "channel", "channel_from_0"};
  /// In a template, the folder of the table, with its '/'.
  static constexpr std::string_view kFolder = "folder";

  /// Texts and columns of the table alternate, with at least one column: the template
  /// "wavs/{id}.wav" is {"wavs/", "id", ".wav"}, and another column's name {"", "speaker_id", ""}.
  using Source = std::vector<std::string>;
  struct Column {
    std::string name;  ///< for file_list, such as "path"
    std::string text;  ///< as it was written
    Source source;
  };
  std::vector<Column> list;

  /// Whether that text, written as a value, is the column of that name and no template.
  [[nodiscard]] static bool is_name(std::string_view text) {
    return !text.empty() && text != kFolder && text.find_first_of({"{}\0", 3}) == text.npos;
  }
  [[nodiscard]] bool has(std::string_view name) const { return find(name) != nullptr; }
  [[nodiscard]] const Column* find(std::string_view name) const;
  /// The columns of the table from which `name` is made; without a mapping the one of that name.
  [[nodiscard]] std::vector<std::string> sources(std::string_view name) const;
  /// All columns of the table from which some column is made.
  [[nodiscard]] std::vector<std::string> sources() const;
};

/// Written as a map from names to columns or templates.
template <>
struct OptionType<ColumnsAre> {
  static std::string name() { return "map of text to text"; }
  static std::string parse(const Value& v, ColumnsAre& out);
  static Value echo(const ColumnsAre& v);
};

struct TableFormat {
  static constexpr const char* kRest = "...";  ///< behind a last name that has the rest of the line
  std::string delimiter = {};                  ///< between cells; "": as the name of the table says
  /// The names of the columns; empty: the first line has them.
  std::vector<std::string> header = {};
  std::string comment = {};  ///< the beginning of lines that are no rows; "": none
  Quoting quoting = Quoting::automatic;
  ColumnsAre columns_are = {};

  /// `has_cells`: whether there is a table with delimiters.
  void describe(Schema& s, const std::function<bool()>& has_cells);
  /// Whether the table may have any name, since it is described.
  [[nodiscard]] bool is_given() const { return !delimiter.empty() || !header.empty(); }
};

}  // namespace melflow
