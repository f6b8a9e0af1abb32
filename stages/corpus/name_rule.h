// Rules by which a file gets a name from its path or from a table, such as the speaker's: a folder,
// a regular expression or a column.
#pragma once

#include <optional>
#include <regex>
#include <string>
#include <string_view>

namespace melflow {

class NameRule {
 public:
  static constexpr const char* kParentDir = "parent_dir";
  static constexpr const char* kTopDir = "top_dir";

  /// `parent_dir`: the folder that the file is in. `top_dir`: its first folder below the root. Text
  /// with a '(': a regular expression, whose ( ) is the name. All other text: a table's column.
  explicit NameRule(std::string text);

  [[nodiscard]] static bool is_pattern(std::string_view text);
  [[nodiscard]] static bool is_column(std::string_view text);
  /// What is wrong with the rule, or "".
  [[nodiscard]] static std::string problem(const std::string& text);

  /// "" where the rule finds none. `path` is below the root, and the folder of `parent_dir` is
  /// given with those it lies in; `cell` is the file's in the column, whose rule gives that.
  [[nodiscard]] std::string_view name_of(std::string_view path, std::string_view cell) const;
  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  std::string text_;
  std::optional<std::regex> pattern_;
};

}  // namespace melflow
