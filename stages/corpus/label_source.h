// Where the labels of files come from: the option `labels` of file_list.
#pragma once

#include <string>
#include <utility>

#include "pipeline/options/option_type.h"

namespace melflow {

enum class Labels { none, parent_dir, top_dir, file, manifest, column, pattern };
template <>
struct EnumNames<Labels> {
  // The others are known by their rule.
  static constexpr std::pair<const char*, Labels> values[] = {{"none", Labels::none},
                                                              {"parent_dir", Labels::parent_dir},
                                                              {"top_dir", Labels::top_dir},
                                                              {"file", Labels::file},
                                                              {"manifest", Labels::manifest}};
};

struct LabelSource {
  Labels kind = Labels::none;
  std::string rule;  ///< column: the name of an entry of `columns`; pattern: a regular expression
                     ///< whose ( ) finds the label in the path

  friend bool operator==(const LabelSource& a, Labels b) { return a.kind == b; }
  [[nodiscard]] bool is_in_table() const {
    return kind == Labels::file || kind == Labels::manifest;
  }
};

/// Written as one of the names, as the name of an entry of `columns`, or as a regular expression.
template <>
struct OptionType<LabelSource> {
  static std::string name() { return "text"; }
  static std::string parse(const Value& v, LabelSource& out);
  static Value echo(const LabelSource& v);
};

}  // namespace melflow
