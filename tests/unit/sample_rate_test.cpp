#include "stages/sample_rate.h"

#include <doctest/doctest.h>

namespace melflow::sample_rate_test {

TEST_CASE("sample rate: Hz and kHz as people write them, echoed as Hz") {
  struct Row {
    const char* text;
    int hz;
  };
  for (const Row& row : {Row{"16000", 16000},
                         {"16000 Hz", 16000},
                         {"16kHz", 16000},
                         {"16 khz", 16000},
                         {"16k", 16000},
                         {"44.1kHz", 44100},
                         {"22.05kHz", 22050},
                         {"11.025 kHz", 11025},
                         {"16e3", 16000},
                         {"0", 0}}) {
    CAPTURE(row.text);
    SampleRate rate;
    CHECK(OptionType<SampleRate>::parse(Value::scalar(row.text), rate) == "");
    CHECK(rate == row.hz);
    CHECK(OptionType<SampleRate>::echo(rate).text() == std::to_string(row.hz));
  }
}

TEST_CASE("sample rate: anything else is refused") {
  const std::string expected = " is not a sample rate in Hz such as 16000, 16kHz or 44.1kHz";
  struct Row {
    Value value;
    std::string message;
  };
  for (const Row& row :
       {Row{Value::scalar("fast"), "'fast'" + expected},
        {Value::scalar("-16000"), "'-16000' is less than 0; write" + expected.substr(7)},
        {Value::scalar("16MHz"), "'16MHz'" + expected},
        {Value::scalar("22.05kHZz"), "'22.05kHZz'" + expected + ". Did you mean '22.05kHz'?"},
        {Value::scalar("16000 hertz"), "'16000 hertz'" + expected + ". Did you mean '16000Hz'?"},
        {Value::scalar("nan"), "'nan'" + expected},
        {Value::list({}), "a list is given where" + expected.substr(7) + " is expected"},
        {Value::scalar("inf"), "'inf'" + expected},
        {Value::scalar("3e9"), "3e9 is too large"},
        {Value::scalar("0.5"),
         "0.5 is not a whole number of Hz; write one, such as 22050 or 22.05kHz"},
        {Value::scalar("44.1"), "44.1 is not a whole number of Hz. Did you mean '44.1kHz'?"},
        {Value::scalar("22.0505kHz"),
         "22.0505kHz is not a whole number of Hz; write one, such as 22050 or 22.05kHz"}}) {
    CAPTURE(row.message);
    SampleRate rate = 77;
    CHECK(OptionType<SampleRate>::parse(row.value, rate) == row.message);
    CHECK(rate == 77);
  }
}

}  // namespace melflow::sample_rate_test
