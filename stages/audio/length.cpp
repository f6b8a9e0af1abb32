#include "stages/audio/length.h"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace melflow {
namespace {

// What may be written as samples; a time may be as many and no more.
constexpr double kMostSamples = 1e15;

}  // namespace

std::int64_t Length::at(double sample_rate) const {
  if (!is_time()) return samples;
  return static_cast<std::int64_t>(std::min(std::round(seconds * sample_rate), kMostSamples));
}

std::string OptionType<Length>::parse(const Value& v, Length& out) {
  const std::string& t = v.text();
  std::string bad = detail::describe_value(v) +
                    " found where a number of samples or a time is expected, such as 512, "
                    "10s or 25ms";
  if (!v.is_scalar()) return bad;
  double number = 0;
  const auto [end, error] = std::from_chars(t.data(), t.data() + t.size(), number);
  if (error != std::errc{} || !(number >= 0) || number > kMostSamples) return bad;
  std::string_view unit(end, static_cast<std::size_t>(t.data() + t.size() - end));
  while (unit.starts_with(' ')) unit.remove_prefix(1);
  if (unit.empty()) {
    if (number != std::floor(number))
      return excerpt(t) + " is no whole number of samples; write a time as 0.5s";
    out = {.samples = static_cast<std::int64_t>(number)};
    return {};
  }
  const double factor = unit == "s"     ? 1
                        : unit == "ms"  ? 1e-3
                        : unit == "us"  ? 1e-6
                        : unit == "min" ? 60
                        : unit == "h"   ? 3600
                                        : 0;
  if (factor == 0) return bad;
  out = {.seconds = number * factor};
  return {};
}

Value OptionType<Length>::echo(const Length& v) {
  if (v.is_time()) return Value::scalar(number_text(v.seconds) + "s");
  return Value::scalar(std::to_string(v.samples));
}

}  // namespace melflow
