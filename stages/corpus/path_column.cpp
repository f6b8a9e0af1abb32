#include "stages/corpus/path_column.h"

#include <fmt/format.h>

#include "pipeline/base/problem.h"
#include "pipeline/base/text.h"
#include "stages/corpus/path_parts.h"

namespace melflow {

std::string_view PathColumn::take(std::string_view path, std::size_t file) {
  const std::string_view text =
      rule.text() == NameRule::kParentDir ? parent_folder(path) : rule.name_of(path, "");
  ++files;
  if (text.empty() && without++ == 0) first_without = file;
  return text;
}

std::string PathColumn::remark(const Manifest& manifest) const {
  if (without == 0) return {};
  const std::string example = manifest.name(first_without);
  if (without == files)
    throw RunError(
        fmt::format("{}: {} matches none of the {} paths, such as {}; correct it, or "
                    "remove it",
                    name, rule.text(), files, example));
  return fmt::format("{}: {} finds no text in {} of {} paths, such as {}; it is empty there", name,
                     rule.text(), without, files, example);
}

}  // namespace melflow
