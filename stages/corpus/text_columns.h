// The columns of text that an output stores for every file (speaker, transcript), and the rule that
// gives each its values.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "pipeline/options/schema.h"

namespace melflow {

struct TextColumns {
  struct Column {
    std::string name;  ///< in the output
    std::string rule;  ///< the text of a NameRule
  };
  std::vector<Column> list;

  [[nodiscard]] std::vector<std::string> names() const;
  /// Whether one of the columns is read from a table.
  [[nodiscard]] bool read_table() const;
};

/// Written as a list of names of a table's columns, or as a map from names to rules.
template <>
struct OptionType<TextColumns> {
  static std::string name() { return "list of text, or map of text to text"; }
  static std::string parse(const Value& v, TextColumns& out);
  static Value echo(const TextColumns& v);
};

}  // namespace melflow
