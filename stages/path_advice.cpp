#include "stages/path_advice.h"

#include <algorithm>
#include <cctype>

#include <fmt/format.h>

#include "pipeline/sentences.h"

namespace melflow {

std::string path_advice(std::string_view path) {
  if (path == "~" || path.starts_with("~/"))
    return fmt::format("; ~ is not expanded: write ${{HOME}}{}", path.substr(1));
  const std::size_t open = path.find('{'), close = path.find('}');
  if (open == path.npos || close == path.npos || close < open + 2) return {};
  const std::string_view name = path.substr(open + 1, close - open - 1);
  const bool is_variable = std::all_of(name.begin(), name.end(), [](unsigned char c) {
    return std::isupper(c) != 0 || std::isdigit(c) != 0 || c == '_';
  });
  return is_variable ? did_you_mean(fmt::format("${{{}}}", name)) : std::string();
}

}  // namespace melflow
