// Rules by which a file gets a name from its path, a table or a file beside it, such as the
// speaker's: a folder, a regular expression, a column or an ending.
#pragma once

#include <memory>
#include <string>
#include <string_view>

namespace re2 {
class RE2;
}

namespace melflow {

class NameRule {
 public:
  static constexpr const char* kParentDir = "parent_dir";
  static constexpr const char* kTopDir = "top_dir";

  /// `text` is `parent_dir` (the folder that the file is in), `top_dir` (its first folder below the
  /// root), a regular expression of RE2 with a '(', whose ( ) finds the name, a rule of FilesBeside
  /// (".txt", "txt/{name}.txt"), or a table's column.
  explicit NameRule(std::string text);

  [[nodiscard]] static bool is_pattern(std::string_view text);
  [[nodiscard]] static bool is_beside(std::string_view text);
  [[nodiscard]] static bool is_column(std::string_view text);
  /// The problem with the rule, or "".
  [[nodiscard]] static std::string problem(const std::string& text);

  /// The name that the rule gives a file; "" where it finds none. `path`: relative to the root;
  /// `cell`: the text from the table or the file beside it, which rules of these kinds return. For
  /// `parent_dir` the name is the folder's whole path below the root.
  [[nodiscard]] std::string_view name_of(std::string_view path, std::string_view cell) const;
  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  std::string text_;
  std::shared_ptr<const re2::RE2> pattern_,
      bytes_;  // the expression for UTF-8 paths, and for other paths
};

}  // namespace melflow
