// The sources of files' labels and texts: the options `labels` and `columns` of file_list.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "pipeline/options/option_type.h"
#include "pipeline/options/schema.h"

namespace melflow {

enum class Labels { none, parent_dir, top_dir, file, manifest, column, rule };
template <>
struct EnumNames<Labels> {
  // The other kinds are recognized by their rule.
  static constexpr std::pair<const char*, Labels> values[] = {{"none", Labels::none},
                                                              {"parent_dir", Labels::parent_dir},
                                                              {"top_dir", Labels::top_dir},
                                                              {"file", Labels::file},
                                                              {"manifest", Labels::manifest}};
};

struct LabelSource {
  Labels kind = Labels::none;
  std::string rule;  ///< column: the name of an entry of `columns`; rule: the text of a NameRule

  friend bool operator==(const LabelSource& a, Labels b) { return a.kind == b; }
  [[nodiscard]] bool is_in_table() const {
    return kind == Labels::file || kind == Labels::manifest;
  }
};

/// Written as one of the names, as the name of an entry of `columns`, as a regular expression, or
/// as the ending of files beside the recordings.
template <>
struct OptionType<LabelSource> {
  static std::string name() { return "text"; }
  static std::string parse(const Value& v, LabelSource& out);
  static Value echo(const LabelSource& v);
};

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
