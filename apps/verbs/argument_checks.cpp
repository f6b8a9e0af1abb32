#include "apps/verbs/argument_checks.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "apps/usage_errors.h"
#include "pipeline/base/near_names.h"
#include "pipeline/base/text.h"
#include "pipeline/options/option_type.h"

namespace melflow {

CountBound count_bound(const char* option, const std::string& text) {
  CountBound out;
  const std::string why = OptionType<CountBound>::parse(Value::scalar(text), out);
  if (!why.empty()) throw UsageError(fmt::format("{}: {}", option, why));
  return out;
}

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
                       : fmt::format("'{}' {}", excerpt(text), not_one_of(text, names));
          },
          ""};
}

void add_workers(CLI::App& verb, std::optional<int>& workers, const char* what) {
  verb.add_option("--workers", workers, what)->type_name("N")->check(is_integer(0, 1024));
}

std::optional<double> duration_seconds(std::string_view text) {
  constexpr std::pair<std::string_view, double> kUnits[] = {
      {"d", 86400}, {"h", 3600}, {"ms", 1e-3}, {"m", 60}, {"s", 1}};
  if (double seconds = 0; !text.empty()) {
    const auto [end, error] =
        std::from_chars(text.data(), text.data() + text.size(), seconds, std::chars_format::fixed);
    if (error == std::errc() && end == text.data() + text.size())
      return seconds > 0 && std::isfinite(seconds) ? std::optional(seconds) : std::nullopt;
  }
  double total = 0, before = std::numeric_limits<double>::infinity();
  while (!text.empty()) {
    double number = 0;
    const auto [end, error] =
        std::from_chars(text.data(), text.data() + text.size(), number, std::chars_format::fixed);
    if (error != std::errc() || !(number >= 0)) return std::nullopt;
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    double unit = 0;
    for (const auto& [name, seconds] : kUnits) {
      if (!text.starts_with(name)) continue;
      unit = seconds;
      text.remove_prefix(name.size());
      break;
    }
    if (unit == 0 || unit >= before) return std::nullopt;
    before = unit;
    total += number * unit;
  }
  return total > 0 && std::isfinite(total) ? std::optional(total) : std::nullopt;
}

void add_time(CLI::App& verb, const char* name, double& seconds, const char* what,
              bool may_be_zero) {
  verb.add_option_function<std::string>(
          name,
          [name, may_be_zero, &seconds](const std::string& text) {
            const bool is_zero = may_be_zero && (text == "0" || text == "0s");
            const std::optional<double> given = is_zero ? 0 : duration_seconds(text);
            const bool is_nothing = !text.empty() && text.find_first_not_of("0.smhd") == text.npos;
            if (!given && is_nothing)
              throw CLI::ValidationError(
                  name, "'" + text + "' is not a time; write one above 0, such as 90s or 1.5h");
            if (!given)
              throw CLI::ValidationError(
                  name, "'" + text + "' is not a time such as 11h50m, 90s, 1.5h or 90 (seconds)");
            seconds = *given;
          },
          what)
      ->type_name("TIME");
}

}  // namespace melflow
