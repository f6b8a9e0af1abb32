// Conditions on files: every suggestion of the parser is valid, and means what the user meant.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

#include "stages/routing/amount.h"
#include "stages/routing/conditions.h"

namespace melflow::conditions_test {
namespace {

std::string key_of(Fact fact) {
  return fact == Fact::duration      ? "duration"
         : fact == Fact::size        ? "size"
         : fact == Fact::sample_rate ? "rate"
         : fact == Fact::channels    ? "channels"
         : fact == Fact::share       ? "quality.clipped_share"
         : fact == Fact::decibels    ? "quality.loudness"
                                     : "target.level";
}

std::string problem(Fact fact, Value value, Conditions& out) {
  Value map = Value::map({});
  map.set(key_of(fact), std::move(value));
  return Conditions::parse(map, out);
}
std::string problem(Fact fact, const std::string& text) {
  Conditions out;
  return problem(fact, Value::scalar(text, {}, true), out);
}

std::string between(const std::string& text, const std::string& begin, const std::string& end) {
  const std::size_t at = text.find(begin);
  if (at == text.npos) return {};
  const std::size_t from = at + begin.size(), to = text.find(end, from);
  return text.substr(from, to == text.npos ? to : to - from);
}

// Returns a message's suggestion; "" if it has none.
std::string hint_of(const std::string& message) {
  if (std::string meant = between(message, ". Did you mean '", "'?"); !meant.empty()) return meant;
  if (std::string both = between(message, "write it at both, as in ", " "); !both.empty())
    return both;
  if (std::string quoted = between(message, "; write \"", "\""); !quoted.empty()) return quoted;
  const std::string word = between(message, "; write ", " ");
  const bool is_prose =
      word == "the" || word == "one," || message.find("; write 0 or more") != message.npos;
  return is_prose ? std::string() : word;
}

struct Written {
  Fact fact;
  std::string text, hint;
};

}  // namespace

TEST_CASE("conditions: a range that is written otherwise has a hint that says what was meant") {
  const Written rows[] = {
      {Fact::duration, "1s...15s", "1s..15s"},
      {Fact::duration, "1...15s", "1s..15s"},
      {Fact::duration, "1s … 15s", "1s..15s"},
      {Fact::duration, "0.5...15", "0.5..15"},
      {Fact::duration, "15s...1s", "1s..15s"},
      {Fact::duration, "2..0.5", "0.5..2"},
      {Fact::duration, "1...5", "1..5"},
      {Fact::duration, ".7...5", "0.7..5"},
      {Fact::duration, "1-15s", "1s..15s"},
      {Fact::duration, "1s-15s", "1s..15s"},
      {Fact::duration, "1 s - 15 s", "1s..15s"},
      {Fact::duration, "1 – 15 s", "1s..15s"},
      {Fact::duration, "1 to 15s", "1s..15s"},
      {Fact::duration, "0-15s", "0..15s"},
      {Fact::duration, "500ms-2min", "500ms..2min"},
      {Fact::duration, ">=1s, <=15s", "1s..15s"},
      {Fact::duration, "<= 15s and >= 1s", "1s..15s"},
      {Fact::duration, "≥1s, ≤15s", "1s..15s"},
      {Fact::duration, "> 1s <15s", "1s..15s"},
      {Fact::duration, "15s..1s", "1s..15s"},
      {Fact::duration, "1..15s", "1s..15s"},
      {Fact::size, "1-2MiB", "1MiB..2MiB"},
      {Fact::sample_rate, "8-16kHz", "8kHz..16kHz"},
      {Fact::channels, "1-2", "1..2"},
      {Fact::target, "-5--1", "-5..-1"},
      {Fact::target, "-5-5", "-5..5"},
      {Fact::target, "-5...-1.5", "-5..-1.5"},
      {Fact::share, "1%...5%", "1%..5%"},
      {Fact::share, "1-5%", "1%..5%"},
      {Fact::decibels, "-30dB...-20dB", "-30dB..-20dB"},
      {Fact::decibels, ">= -30 LUFS, <= -16 LUFS", "-30LUFS..-16LUFS"},
      {Fact::decibels, "-16LUFS..-30LUFS", "-30LUFS..-16LUFS"},
      // The meaning is unclear, or it is no range.
      {Fact::duration, "1s-15", ""},
      {Fact::duration, ".5...", ""},
      {Fact::duration, "-5s-1s", ""},
      {Fact::duration, "1s-15m", ""},
      {Fact::duration, "1s, 15s", ""},
      {Fact::duration, ">1s, >15s", ""},
      {Fact::duration, ">1s-15s", ""},
      {Fact::duration, "<1s, >15s", ""},
      {Fact::duration, "1s..", ">= 1s"},
      {Fact::duration, "1s....15s", ""},
      {Fact::duration, "between 1s and 15s", ""},
      {Fact::duration, "long", ""},
      {Fact::channels, "1.5-2", ""},
      {Fact::size, "1MiB-2s", ""},
  };
  for (const Written& row : rows) {
    CAPTURE(row.text);
    const std::string message = problem(row.fact, row.text);
    CAPTURE(message);
    CHECK(!message.empty());
    CHECK(hint_of(message) == row.hint);
    if (!row.hint.empty()) CHECK(problem(row.fact, row.hint) == "");
  }
}

TEST_CASE("conditions: every hint can be written, whatever numbers, units and signs there are") {
  struct Units {
    Fact fact;
    std::vector<std::string> units;
  };
  const Units all[] = {{Fact::duration, {"", "s", "ms", "min", "h", " s", "m", "B"}},
                       {Fact::size, {"", "B", "KiB", "MB", "s"}},
                       {Fact::sample_rate, {"", "Hz", "kHz", "khz"}},
                       {Fact::channels, {"", "s"}},
                       {Fact::share, {"", "%", " %", "dB"}},
                       {Fact::decibels, {"", "dB", "LUFS", " LU", "%"}},
                       {Fact::target, {"", "s"}}};
  std::size_t hints = 0;
  for (const auto& [fact, units] : all)
    for (const char* low : {"0", "1", ".5", "2.5", "-3", "5.", "1e3"})
      for (const char* high : {"15", "0.25", "-1", ".75"})
        for (const std::string& a : units)
          for (const std::string& b : units)
            for (const char* form :
                 {"{}-{}", "{}..{}", "{}...{}", "{} … {}", "{} to {}", "{}:{}", ">={},<={}",
                  "<{} >{}", "> {} and < {}", "{},{}", "{}....{}"}) {
              const std::string text = fmt::format(fmt::runtime(form), low + a, high + b);
              CAPTURE(text);
              const std::string message = problem(fact, text), hint = hint_of(message);
              if (hint.empty()) continue;
              ++hints;
              CAPTURE(message);
              CHECK(problem(fact, hint) == "");
            }
  CHECK(hints > 1000);
}

TEST_CASE("conditions: measures have the units of what they are") {
  struct Row {
    const char *measure, *text, *problem;
  };
  const Row rows[] = {
      {"clipped_share", "< 0.1%", ""},
      {"clipped_share", "0..0.5", ""},
      {"clipped_share", "0%..5 %", ""},
      {"clipped_share", "> 1dB", "'dB' is not a unit of quality.clipped_share; its units are %"},
      {"clipped_share", "> -1%", "0 or more"},
      {"snr", "> 10dB", ""},
      {"snr", "> -5", ""},
      {"snr", "> 10%", "'%' is not a unit of quality.snr; its units are dB, LU, LUFS"},
      {"loudness", "-30 LUFS..-16 LUFS", ""},
      {"loudness_range", "< 20 LU", ""},
      {"peak", "< -1dB", ""},
      {"peak", "0.1..0.99", ""},
      {"peak", "< 1kHz", "is not a unit of quality.peak; its units are dB, dBFS"},
      {"bandwidth", "> 7kHz", ""},
      {"bandwidth", "> 7s", "its units are Hz, kHz"},
      {"silent_longest", "< 2s", ""},
      {"silent_longest", "< 2Hz", "its units are s, ms, min, h"},
      {"clicks", "< 1", ""},
      {"clicks", "< 1s", "quality.clicks"},
      {"rate_ratio", "0.99..1.01", ""},
      {"rate_ratio", "< 1%", "quality.rate_ratio"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.measure);
    CAPTURE(row.text);
    Value map = Value::map({});
    map.set(fmt::format("quality.{}", row.measure), Value::scalar(row.text, {}, true));
    Conditions out;
    const std::string message = Conditions::parse(map, out);
    CAPTURE(message);
    CHECK(message.empty() == std::string(row.problem).empty());
    CHECK(message.find(row.problem) != message.npos);
  }
}

TEST_CASE("conditions: what a list of lengths is told to be written as can be written") {
  const std::pair<std::vector<std::string>, std::string> rows[] = {
      {{"1s", "15s"}, "1s..15s"}, {{"15s", "1s"}, "1s..15s"},
      {{"1", "15s"}, "1s..15s"},  {{"2min", "1", "90"}, "1s..2min"},
      {{"1", "15"}, "1..15"},     {{"5s", "500ms", "2min"}, "500ms..2min"}};
  for (const auto& [texts, range] : rows) {
    std::vector<Value> items;
    for (const std::string& text : texts) items.push_back(Value::scalar(text));
    Conditions out;
    REQUIRE(problem(Fact::duration, Value::list(std::move(items)), out) == "");
    CHECK(between(out.remark(), "; write ", " for a range") == range);
    CHECK(problem(Fact::duration, range) == "");
  }
}

}  // namespace melflow::conditions_test
