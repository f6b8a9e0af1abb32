#include "pipeline/options/option_type.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>

#include <fmt/format.h>

#include "pipeline/base/sentences.h"

namespace melflow {
namespace {

struct Unit {
  std::string_view name;
  double factor;
};
constexpr std::array kUnits{
    Unit{"TiB", 1024.0 * 1024 * 1024 * 1024},
    Unit{"GiB", 1024.0 * 1024 * 1024},
    Unit{"MiB", 1024.0 * 1024},
    Unit{"KiB", 1024.0},
    Unit{"TB", 1e12},
    Unit{"GB", 1e9},
    Unit{"MB", 1e6},
    Unit{"kB", 1e3},
    Unit{"KB", 1e3},
    Unit{"B", 1},
    Unit{"", 1},
};

template <class T>
std::string shortest(T value) {
  std::array<char, 40> buffer{};
  const auto [end, error] = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value);
  return {buffer.data(), end};
}

}  // namespace

std::string number_text(double value) { return shortest(value); }
std::string number_text(float value) { return shortest(value); }

std::string rounded_up(std::size_t bytes) {
  constexpr std::size_t kMiB = std::size_t{1} << 20;
  return fmt::format("{}", Bytes{bytes < kMiB ? bytes : (bytes + kMiB - 1) / kMiB * kMiB});
}

namespace detail {

std::string describe_value(const Value& v) {
  switch (v.kind()) {
    case Value::Kind::null:
      return "nothing";
    case Value::Kind::scalar:
      return fmt::format("'{}'", excerpt(v.text()));
    case Value::Kind::list:
      return "a list";
    case Value::Kind::map:
      return "a map";
  }
  return {};
}

namespace {
// Skips a leading plus, which from_chars does not accept; "+-5" is not a number.
const char* past_plus(const std::string& text) {
  return text.data() + (text.starts_with('+') && !text.starts_with("+-") ? 1 : 0);
}

// Compares without case: YAML takes "true", "True" and "TRUE" as one word.
bool is_same_word(std::string_view text, std::string_view word) {
  return std::equal(text.begin(), text.end(), word.begin(), word.end(), [](char a, char b) {
    return std::tolower(static_cast<unsigned char>(a)) == b;
  });
}

std::string in_quotes(const Value& v) {
  return describe_value(v) + " is text because of its quotes; remove the quotes";
}
}  // namespace

std::string is_not(const Value& v, const std::string& what) {
  if (v.is_null()) return "has no value; write " + what;
  if (!v.is_scalar())
    return fmt::format("{} is given where {} is expected", describe_value(v), what);
  return describe_value(v) + " is not " + what;
}

std::string is_not_written() { return "has no value; write one, or null for the default"; }

std::string parse_integer(const Value& v, std::int64_t& out) {
  const std::string& t = v.text();
  const auto [end, error] = std::from_chars(past_plus(t), t.data() + t.size(), out);
  const bool is_whole = end == t.data() + t.size() && !t.empty();
  if (is_whole && v.quoted()) return in_quotes(v);
  if (is_whole && error == std::errc::result_out_of_range)
    return excerpt(t) + (t[0] == '-' ? " is too small" : " is too large");
  if (is_whole && error == std::errc{}) return {};
  return is_not(v, "an integer");
}

std::string parse_number(const Value& v, double& out) {
  const std::string& t = v.text();
  const auto [end, error] = std::from_chars(past_plus(t), t.data() + t.size(), out);
  if (error != std::errc{} || end != t.data() + t.size() || !std::isfinite(out))
    return is_not(v, "a number");
  return v.quoted() ? in_quotes(v) : "";
}

std::optional<std::pair<double, std::string_view>> number_and_unit(const Value& v) {
  const std::string& t = v.text();
  double number = 0;
  const auto [end, error] = std::from_chars(t.data(), t.data() + t.size(), number);
  if (!v.is_scalar() || error != std::errc{} || !(number >= 0) || !std::isfinite(number)) return {};
  std::string_view unit(end, static_cast<std::size_t>(t.data() + t.size() - end));
  while (unit.starts_with(' ')) unit.remove_prefix(1);
  return std::pair(number, unit);
}

std::string is_no_amount(const Value& v, const std::string& expected) {
  if (v.is_scalar() && v.text().starts_with('-')) {
    const Value without_sign = Value::scalar(v.text().substr(1));
    if (number_and_unit(without_sign))
      return describe_value(v) + " is less than 0; write " + expected;
  }
  return is_not(v, expected);
}

}  // namespace detail

std::string OptionType<bool>::parse(const Value& v, bool& out) {
  for (const auto& [word, value] : {std::pair("true", true),
                                    {"yes", true},
                                    {"on", true},
                                    {"false", false},
                                    {"no", false},
                                    {"off", false}}) {
    if (!detail::is_same_word(v.text(), word)) continue;
    if (v.quoted()) return detail::in_quotes(v);
    out = value;
    return {};
  }
  return detail::is_not(v, "true or false");
}

std::string OptionType<std::string>::parse(const Value& v, std::string& out) {
  if (!v.is_scalar()) return detail::is_not(v, "a string");
  out = v.text();
  return {};
}

namespace {

// Suggests a size for units as others write them: "512Mb", "4g".
std::string meant_size(const Value& v) {
  const auto read = detail::number_and_unit(v);
  if (!read || read->second.empty()) return {};
  std::string unit;
  for (const char c : read->second)
    unit += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  constexpr std::string_view kFirst = "kmgt";
  const bool is_known = kFirst.find(unit[0]) != kFirst.npos &&
                        (unit.size() == 1 || unit == unit.substr(0, 1) + "b" ||
                         unit == unit.substr(0, 1) + "ib" || unit == unit.substr(0, 1) + "i");
  if (!is_known) return {};
  return did_you_mean(
      fmt::format("{}{}iB", number_text(read->first),
                  static_cast<char>(std::toupper(static_cast<unsigned char>(unit[0])))));
}

}  // namespace

Value OptionType<Bytes>::echo(const Bytes& bytes) {
  for (const Unit& u : kUnits) {
    if (u.factor < 1024 || u.name.back() != 'B' || u.name.size() != 3) continue;
    const auto whole = static_cast<std::uint64_t>(u.factor);
    if (bytes.count >= whole && bytes.count % whole == 0)
      return Value::scalar(fmt::format("{}{}", bytes.count / whole, u.name));
  }
  return Value::scalar(fmt::format("{}B", bytes.count));
}

std::string OptionType<Bytes>::parse(const Value& v, Bytes& out) {
  if (const auto read = detail::number_and_unit(v)) {
    for (const Unit& u : kUnits) {
      if (read->second != u.name) continue;
      if (read->first * u.factor > 9e18) return excerpt(v.text()) + " is too large";
      out.count = static_cast<std::uint64_t>(std::llround(read->first * u.factor));
      return {};
    }
  }
  return detail::is_no_amount(v, "a size such as 65536, 64KiB or 1.5GiB") + meant_size(v);
}

}  // namespace melflow
