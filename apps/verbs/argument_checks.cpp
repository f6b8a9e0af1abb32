#include "apps/verbs/argument_checks.h"

#include <CLI/CLI.hpp>
#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "pipeline/base/text.h"
#include "pipeline/options/option_type.h"

namespace melflow {

CLI::Validator is_integer(std::int64_t least, std::int64_t most) {
  return {[least, most](const std::string& text) {
            std::int64_t number = 0;
            std::string why = detail::parse_integer(Value::scalar(text), number);
            if (why.empty() && (number < least || number > most)) why = text + " is out of range";
            return why.empty() ? why : fmt::format("{}; allowed: {} to {}", why, least, most);
          },
          ""};  // no name: help already shows what the option takes
}

CLI::Validator is_one_of(const std::vector<std::string>& names) {
  return {[names](const std::string& text) {
            return std::find(names.begin(), names.end(), text) != names.end()
                       ? std::string()
                       : fmt::format("'{}' is not one of {}{}", excerpt(text),
                                     fmt::join(names, ", "), did_you_mean(text, names));
          },
          ""};
}

}  // namespace melflow
