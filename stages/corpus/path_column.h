// A column of text whose values a rule takes from the paths of files, and for how many it finds one.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "stages/corpus/name_rule.h"
#include "stages/manifest.h"

namespace melflow {

struct PathColumn {
  std::string name;  ///< as warnings call it: "columns: speaker"
  NameRule rule;
  std::size_t files = 0, without = 0, first_without = 0;

  /// The text of the file with that number; "" where the rule finds none.
  std::string_view take(std::string_view path, std::size_t file);
  /// On files without a text; "" for none. Throws RunError where no file has one.
  [[nodiscard]] std::string remark(const Manifest& manifest) const;
};

}  // namespace melflow
