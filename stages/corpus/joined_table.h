// Second tables of a corpus, about its speakers, its classes or other groups of its files, joined
// by the name of the group: the option `join` of file_list.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "pipeline/options/option_type.h"
#include "pipeline/options/schema.h"
#include "stages/corpus/table_format.h"
#include "stages/corpus/value_sources.h"

namespace melflow {

struct TableJoin {
  static constexpr const char* kLabel = "label";  ///< as `on`: by the files' labels

  std::string table;
  std::string on;   ///< an entry of `columns`, or kLabel
  std::string key;  ///< the column of the table with the values of `on`; "": its first
  TextColumns columns;
  std::string label, split;  ///< columns of the table; "": none
  TableFormat format;        ///< delimiter, header and comment

  void describe(Schema& s);
  [[nodiscard]] bool renames_labels() const { return on == kLabel; }
};

/// Written as a map; a list has several.
template <>
struct OptionType<TableJoin> {
  static std::string name() { return "map of options"; }
  static std::string parse(const Value& v, TableJoin& out);
  static Value echo(const TableJoin& v);
};

/// The rows of a second table by their key. Blanks around cells do not count.
class JoinedTable {
 public:
  struct Row {
    std::vector<std::string> texts;  ///< of TableJoin::columns, in their order
    std::string label, split;
  };
  /// Reads the table. Warns of lines that cannot be used, which are left out, and of several lines
  /// for one key, of which the last one counts. Throws RunError where the table cannot be read,
  /// lacks a column or has no line that can be used.
  JoinedTable(const TableJoin& join, const std::function<void(std::string)>& warn);

  /// The row with that key; null for none, which is counted, and for an empty key, which is not.
  const Row* find(std::string_view key);
  /// Returns a warning about keys that the table lacks, or "". Throws RunError where it has none of
  /// those that were looked for, since then the option is wrong.
  [[nodiscard]] std::string remark() const;

 private:
  const TableJoin& join_;
  std::string key_;  // the name of the column
  std::unordered_map<std::string, Row> rows_;
  std::unordered_map<std::string, std::size_t> lacking_;
  std::string first_;  // the first key that the table lacks
  std::size_t found_ = 0, files_lacking_ = 0;
};

}  // namespace melflow
