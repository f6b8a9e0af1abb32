#include "stages/length.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "pipeline/base/sentences.h"

namespace melflow {
namespace {

// The largest length in samples, whether written as samples or as a time.
constexpr double kMostSamples = 1e15;

// Returns advice on a unit as other tools write it: "30sec", "1m".
std::string meant_unit(double number, std::string_view unit) {
  constexpr std::pair<std::string_view, std::string_view> kOthers[] = {
      {"sec", "s"},    {"secs", "s"},     {"second", "s"},    {"seconds", "s"}, {"S", "s"},
      {"mins", "min"}, {"minute", "min"}, {"minutes", "min"}, {"msec", "ms"},   {"msecs", "ms"},
      {"hr", "h"},     {"hour", "h"},     {"hours", "h"},     {"millis", "ms"}};
  if (unit == "m") return fmt::format(". Did you mean '{0}min', or '{0}ms'?", number_text(number));
  for (const auto& [other, here] : kOthers)
    if (unit == other) return did_you_mean(fmt::format("{}{}", number_text(number), here));
  return {};
}

}  // namespace

std::int64_t Length::at(double sample_rate) const {
  if (!is_time()) return samples;
  return static_cast<std::int64_t>(std::min(std::round(seconds * sample_rate), kMostSamples));
}

std::string Length::unit_remark(double sample_rate, double least_seconds,
                                std::string_view unit) const {
  if (is_time() || samples <= 0 || sample_rate <= 0) return {};
  const double seconds_there = static_cast<double>(samples) / sample_rate;
  if (seconds_there >= least_seconds) return {};
  return fmt::format("{} is in samples ({:.3g} ms at {:.0f} Hz){}", samples, 1000 * seconds_there,
                     sample_rate, did_you_mean(fmt::format("{}{}", samples, unit)));
}

std::string OptionType<Length>::parse(const Value& v, Length& out) {
  std::string bad =
      detail::is_no_amount(v, "a number of samples or a time such as 512, 10s or 25ms");
  const auto read = detail::number_and_unit(v);
  if (!read || read->first > kMostSamples) return bad;
  const auto [number, unit] = *read;
  if (unit.empty()) {
    if (number != std::floor(number))
      return fmt::format(
          "{0} is not a whole number of samples; write a time with its unit: {1}{0}{2}",
          excerpt(v.text()), number >= 1 && number < 10 ? excerpt(v.text()) + "s or " : "",
          number < 1 ? "s" : "ms");
    out = Length(static_cast<std::int64_t>(number));
    return {};
  }
  const double factor = unit == "s"     ? 1
                        : unit == "ms"  ? 1e-3
                        : unit == "us"  ? 1e-6
                        : unit == "min" ? 60
                        : unit == "h"   ? 3600
                                        : 0;
  if (factor == 0) return bad + meant_unit(number, unit);
  out = Length::of_seconds(number * factor);
  return {};
}

Value OptionType<Length>::echo(const Length& v) {
  if (v.is_time()) return Value::scalar(number_text(v.seconds) + "s");
  return Value::scalar(std::to_string(v.samples));
}

}  // namespace melflow
