#include "stages/length.h"

#include <doctest/doctest.h>

namespace melflow::length_test {

TEST_CASE("length: samples and times as people write them") {
  struct Row {
    const char* text;
    double rate;
    std::int64_t samples;
    bool is_time;
  };
  const Row rows[] = {
      {"512", 16000, 512, false},   {"512.0", 16000, 512, false},
      {"1e3", 8000, 1000, false},   {"0", 16000, 0, false},
      {"10s", 4096, 40960, true},   {"10 s", 4096, 40960, true},
      {"25ms", 16000, 400, true},   {"25ms", 22050, 551, true},
      {"0.5s", 44100, 22050, true}, {"1.5min", 8000, 720000, true},
      {"2h", 8000, 57600000, true}, {"125us", 8000, 1, true},
      {"1us", 8000, 0, true},       {"62.5us", 8000, 1, true},
      {"0s", 8000, 0, true},        {"1e11h", 2147483647, 1'000'000'000'000'000, true},
  };
  for (const Row& row : rows) {
    CAPTURE(row.text);
    CAPTURE(row.rate);
    Length length;
    CHECK(OptionType<Length>::parse(Value::scalar(row.text), length) == "");
    CHECK(length.at(row.rate) == row.samples);
    CHECK(length.is_time() == row.is_time);
    CHECK(length.is_zero() == (length.at(1e9) == 0));
    // The echoed text parses to the same length.
    Length again;
    CHECK(OptionType<Length>::parse(OptionType<Length>::echo(length), again) == "");
    CHECK(again.samples == length.samples);
    CHECK(again.seconds == length.seconds);
  }
}

TEST_CASE("length: anything else is refused, with what is expected") {
  const std::string expected = " is not a number of samples or a time such as 512, 10s or 25ms";
  struct Row {
    Value value;
    std::string message;
  };
  const Row rows[] = {
      {Value::scalar("10x"), "'10x'" + expected},
      {Value::scalar("s"), "'s'" + expected},
      {Value::scalar(""), "''" + expected},
      {Value::scalar("-5"), "'-5' is less than 0; write" + expected.substr(7)},
      {Value::scalar("-5s"), "'-5s' is less than 0; write" + expected.substr(7)},
      {Value::scalar("-5x y"), "'-5x y' is less than 0; write" + expected.substr(7)},
      {Value::scalar("--5"), "'--5'" + expected},
      {Value::scalar("nan"), "'nan'" + expected},
      {Value::scalar("inf"), "'inf'" + expected},
      {Value::scalar("1e16"), "'1e16'" + expected},
      {Value::scalar("10 seconds"), "'10 seconds'" + expected + ". Did you mean '10s'?"},
      {Value::scalar("1m"), "'1m'" + expected + ". Did you mean '1min', or '1ms'?"},
      {Value::scalar("5 parsecs"), "'5 parsecs'" + expected},
      {Value::scalar("0.5"),
       "0.5 is not a whole number of samples; write a time with its unit: 0.5s"},
      {Value::scalar("1.5"),
       "1.5 is not a whole number of samples; write a time with its unit: 1.5s or 1.5ms"},
      {Value::scalar("12.5"),
       "12.5 is not a whole number of samples; write a time with its unit: 12.5ms"},
      {Value::list({Value::scalar("1")}),
       "a list is given where" + expected.substr(7) + " is expected"},
      {Value::map({}), "a map is given where" + expected.substr(7) + " is expected"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.message);
    Length length;
    length.samples = 77;
    CHECK(OptionType<Length>::parse(row.value, length) == row.message);
    CHECK(length.samples == 77);
  }
}

}  // namespace melflow::length_test
