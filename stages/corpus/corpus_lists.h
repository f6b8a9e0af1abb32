// The lists of a corpus: the option `manifest` of file_list, and values that all its files have.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "pipeline/options/option_type.h"

namespace melflow {

struct CorpusLists {
  struct List {
    std::string split;  ///< of all its files; "": as the list says
    std::string path;   ///< a file, a folder of Kaldi's, or a pattern of files
    friend bool operator==(const List&, const List&) = default;
  };
  std::vector<List> list;
  /// In a map, the word in place of a path that means the files of `root` that no list names.
  static constexpr const char* kRest = "rest";
  std::string rest;  ///< the split of these files; "": they are not taken

  [[nodiscard]] bool empty() const { return list.empty(); }
  [[nodiscard]] bool has_splits() const { return !list.empty() && !list.front().split.empty(); }
  /// The paths, for messages.
  [[nodiscard]] std::string text() const;
  /// The lists with the files that match each pattern, in the order of their paths. A pattern has a
  /// '*' or '?' and is no file. Throws RunError where none matches.
  [[nodiscard]] std::vector<List> files() const;
};
bool is_list_pattern(const std::string& path);
/// Whether a list exists; for a pattern, the folder in which it is looked for.
bool is_list_there(const std::string& path);
/// The folder of a list, relative to `root` where it is in there: "" or ending in '/'.
std::string folder_of_list(const std::string& list, const std::string& root);

/// Written as a path, or as a map from splits to paths, one of which may be kRest.
template <>
struct OptionType<CorpusLists> {
  static std::string name() { return "text, or map of text to text"; }
  static std::string parse(const Value& v, CorpusLists& out);
  static Value echo(const CorpusLists& v);
};

/// A label, a split and texts that all files of a source have.
struct Constants {
  /// Stands for the name of the source's node.
  static constexpr const char* kSource = "{source}";
  std::vector<std::pair<std::string, std::string>> list;

  /// "" for none.
  [[nodiscard]] std::string value(std::string_view name) const;
  /// The names but label and split, which are columns of text.
  [[nodiscard]] std::vector<std::string> columns() const;
  [[nodiscard]] Constants of_source(const std::string& name) const;
};

template <>
struct OptionType<Constants> {
  static std::string name() { return "map of text to text"; }
  static std::string parse(const Value& v, Constants& out);
  static Value echo(const Constants& v);
};

}  // namespace melflow
