#include "stages/routing/amount.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <iterator>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "pipeline/base/text.h"
#include "pipeline/options/schema.h"

namespace melflow {
namespace {

struct Unit {
  Fact fact;
  const char* name;
  double factor;
};
constexpr Unit kUnits[] = {{Fact::duration, "s", 1},     {Fact::duration, "ms", 1e-3},
                           {Fact::duration, "min", 60},  {Fact::duration, "h", 3600},
                           {Fact::size, "B", 1},         {Fact::size, "KiB", 1024},
                           {Fact::size, "MiB", 1048576}, {Fact::size, "GiB", 1073741824},
                           {Fact::size, "kB", 1e3},      {Fact::size, "KB", 1e3},
                           {Fact::size, "MB", 1e6},      {Fact::size, "GB", 1e9},
                           {Fact::sample_rate, "Hz", 1}, {Fact::sample_rate, "kHz", 1e3},
                           {Fact::share, "%", 0.01},     {Fact::decibels, "dB", 1},
                           {Fact::decibels, "LU", 1},    {Fact::decibels, "LUFS", 1}};

// Returns a unit's factor to seconds, bytes or hertz; 0 for a unit that the fact does not have.
double factor(Fact fact, std::string_view unit) {
  if (unit.empty()) return 1;
  for (const Unit& u : kUnits)
    if (u.fact == fact && unit == u.name) return u.factor;
  return 0;
}

// Whether the unit is that of a level, which may be below 0.
bool is_level(Fact fact, std::string_view unit) {
  return fact == Fact::peak && (unit == "dB" || unit == "dBFS");
}

std::string units_of(Fact fact) {
  if (fact == Fact::peak) return "dB, dBFS";
  std::vector<std::string> out;
  for (const Unit& u : kUnits)
    if (u.fact == fact) out.emplace_back(u.name);
  return fmt::format("{}", fmt::join(out, ", "));
}

bool has_sign(Fact fact, std::string_view text) {
  return (fact == Fact::target || fact == Fact::peak || fact == Fact::decibels) &&
         text.starts_with('-');
}

std::string unit_of(std::string_view text) {
  if (text.starts_with('-')) text.remove_prefix(1);
  const Value value = Value::scalar(std::string(text));
  const auto read = detail::number_and_unit(value);
  return read ? std::string(read->second) : "";
}

bool is_in_unit(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '%'; }

bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  for (std::size_t at = 0; (at = text.find(from, at)) != text.npos; at += to.size())
    text.replace(at, from.size(), to);
}

// Replaces typographic characters by those on keyboards.
std::string in_ascii(std::string_view text) {
  std::string out(text);
  for (const auto& [from, to] :
       {std::pair("…", "..."), {"–", "-"}, {"—", "-"}, {"≥", ">="}, {"≤", "<="}})
    replace_all(out, from, to);
  return out;
}

bool take(std::string_view& rest, std::string_view word) {
  if (!rest.starts_with(word)) return false;
  rest.remove_prefix(word.size());
  rest = trimmed(rest);
  return true;
}

// One end of a text that means a range: a number with its unit, and whether it is marked as the
// lower or the upper end.
struct End {
  char side = ' ';  // '<' or '>'
  std::string text;
};

std::optional<End> take_end(Fact fact, std::string_view& rest) {
  End out;
  if (!rest.empty() && (rest.front() == '<' || rest.front() == '>')) {
    out.side = rest.front();
    rest.remove_prefix(1);
    if (!take(rest, "=")) rest = trimmed(rest);
  }
  std::size_t n = has_sign(fact, rest) ? 1 : 0;
  const std::size_t first = n;
  while (n < rest.size() &&
         (is_digit(rest[n]) || (rest[n] == '.' && n + 1 < rest.size() && is_digit(rest[n + 1]))))
    ++n;
  if (n == first) return std::nullopt;
  out.text = rest.substr(0, n);
  rest = trimmed(rest.substr(n));
  std::size_t letters = 0;
  while (letters < rest.size() && is_in_unit(rest[letters])) ++letters;
  if (const std::string_view unit = rest.substr(0, letters);
      !unit.empty() && (factor(fact, unit) > 0 || is_level(fact, unit))) {
    out.text += unit;
    rest = trimmed(rest.substr(letters));
  }
  return out;
}

// Takes the text between two comparisons, or between two numbers.
bool take_separator(std::string_view& rest, bool are_comparisons) {
  if (!are_comparisons)
    return (take(rest, "...") && !rest.starts_with('.')) || take(rest, "-") || take(rest, "to ");
  (void)(take(rest, ",") || take(rest, "and ") || take(rest, "&&") || take(rest, "&"));
  return true;
}

}  // namespace

Fact amounts_of(MeasureUnit unit) {
  switch (unit) {
    case MeasureUnit::level:
      return Fact::peak;
    case MeasureUnit::share:
      return Fact::share;
    case MeasureUnit::seconds:
      return Fact::duration;
    case MeasureUnit::hertz:
      return Fact::sample_rate;
    case MeasureUnit::decibels:
      return Fact::decibels;
    case MeasureUnit::count:
      return Fact::channels;
    case MeasureUnit::number:
      break;
  }
  return Fact::target;
}

std::string_view trimmed(std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  return text;
}

std::optional<double> amount(Fact fact, std::string_view text) {
  const bool is_negative = has_sign(fact, text);
  if (is_negative) text.remove_prefix(1);
  const Value value = Value::scalar(std::string(trimmed(text)));
  const auto read = detail::number_and_unit(value);
  if (!read) return std::nullopt;
  if (is_level(fact, read->second))
    return std::pow(10.0, (is_negative ? -1 : 1) * read->first / 20);
  if (fact == Fact::peak && is_negative) return std::nullopt;
  const double unit = factor(fact, read->second);
  if (unit == 0) return std::nullopt;
  if (fact == Fact::channels && read->first != std::floor(read->first)) return std::nullopt;
  return read->first * unit * (is_negative ? -1 : 1);
}

std::string why_no_amount(const std::string& key, Fact fact, std::string_view text) {
  const bool is_negative = text.starts_with('-');
  const Value value = Value::scalar(std::string(trimmed(text.substr(is_negative ? 1 : 0))));
  const auto read = detail::number_and_unit(value);
  if (!read || !std::all_of(read->second.begin(), read->second.end(), is_in_unit)) return {};
  if (is_level(fact, read->second)) return {};
  if (is_negative && fact != Fact::target && fact != Fact::decibels)
    return fmt::format("{} is less than 0; write 0 or more{}", excerpt(text),
                       fact == Fact::peak && read->second.empty()
                           ? fmt::format(", or a level with its unit: {}dB", excerpt(text))
                           : std::string());
  const std::string unit = excerpt(read->second), known = units_of(fact);
  if (factor(fact, read->second) == 0)
    return known.empty()
               ? fmt::format("{} has a unit; write the number alone", excerpt(text))
               : fmt::format("'{}' is not a unit of {}; its units are {}", unit, key, known);
  if (fact == Fact::channels && read->first != std::floor(read->first))
    return excerpt(text) + " is not a whole number; write one, such as 1, \"> 2\" or 1..2";
  return {};
}

std::string amount_text(Fact fact, double number) {
  if (fact == Fact::duration) return fmt::format("{:.6g} s", number);
  if (fact == Fact::sample_rate) return fmt::format("{:.0f} Hz", number);
  if (fact == Fact::size) return fmt::format("{:.0f} bytes", number);
  if (fact == Fact::share) return fmt::format("{:.4g} %", 100 * number);
  if (fact == Fact::decibels) return fmt::format("{:.4g} dB", number);
  if (fact == Fact::peak)
    return number == 0 ? "0" : fmt::format("{:.6g} ({:.2f} dB)", number, 20 * std::log10(number));
  return fmt::format("{:.6g}", number);
}

bool lacks_a_unit(Fact fact, std::string_view low, std::string_view high) {
  const auto without_sign = [fact](std::string_view text) {
    if (fact == Fact::peak && text.starts_with('-')) text.remove_prefix(1);
    return Value::scalar(std::string(text));
  };
  const Value texts[] = {without_sign(low), without_sign(high)};
  const auto a = detail::number_and_unit(texts[0]), b = detail::number_and_unit(texts[1]);
  if (!a || !b || a->second.empty() == b->second.empty()) return false;
  return fact == Fact::peak || (a->second.empty() ? a : b)->first != 0;
}

std::string with_unit(Fact fact, std::string_view text) {
  const char* const unit = fact == Fact::duration      ? "s"
                           : fact == Fact::size        ? "B"
                           : fact == Fact::sample_rate ? "Hz"
                                                       : "";
  return std::string(text) + (unit_of(text).empty() ? unit : "");
}

std::string range_text(std::string_view low, std::string_view high) {
  const auto written = [](std::string_view text) {
    std::string out = text.starts_with('.') ? "0" : "";
    std::copy_if(text.begin(), text.end(), std::back_inserter(out),
                 [](char c) { return c != ' '; });
    return out;
  };
  return fmt::format("{}..{}", written(low), written(high));
}

std::string meant_range(Fact fact, std::string_view text) {
  const std::string ascii = in_ascii(text);
  std::string_view rest = trimmed(ascii);
  auto low = take_end(fact, rest);
  if (!low || !take_separator(rest, low->side != ' ')) return {};
  auto high = take_end(fact, rest);
  if (!high || !rest.empty() || (low->side == ' ') != (high->side == ' ')) return {};
  if (low->side != ' ' && low->side == high->side) return {};
  if (low->side == '<') std::swap(low, high);
  // A unit behind the second number is that of both.
  if (low->side == ' ' && unit_of(low->text).empty() && lacks_a_unit(fact, low->text, high->text))
    low->text += unit_of(high->text);
  const auto from = amount(fact, low->text), to = amount(fact, high->text);
  if (!from || !to || lacks_a_unit(fact, low->text, high->text)) return {};
  if (*from > *to && low->side != ' ') return {};
  if (*from > *to) std::swap(low, high);
  return range_text(low->text, high->text);
}

}  // namespace melflow
