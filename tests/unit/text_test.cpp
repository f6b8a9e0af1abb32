// Text from outside that is printed on a terminal or in a message.
#include <doctest/doctest.h>

#include "pipeline/base/text.h"

namespace melflow::text_test {

TEST_CASE("text: what a terminal would act on is shown as an escape, all else as it is") {
  struct Row {
    std::string text, shown;
  };
  const Row rows[] = {
      {"plain.wav", "plain.wav"},
      {"two\nlines\tand a tab", "two\nlines\tand a tab"},
      {"M\xC3\xBCnchen \xE6\x97\xA5\xE6\x9C\xAC \xF0\x9F\x8E\xB5",
       "M\xC3\xBCnchen \xE6\x97\xA5\xE6\x9C\xAC \xF0\x9F\x8E\xB5"},
      {"\x1b]0;title\x07", "\\u001b]0;title\\u0007"},
      {"back\rto the start\b\x7f", "back\\u000dto the start\\u0008\\u007f"},
      {std::string("a\0b", 3), "a\\u0000b"},
      {"\xC2\x9B"
       "2J",
       "\\u009b2J"},  // the control sequence introducer, a C1 control
      {"\xE2\x80\xAEgpj.exe\xE2\x81\xA9",
       "\\u202egpj.exe\\u2069"},  // right to left; the end of an isolate
      {"\xE2\x80\x8F\xD8\x9C\xE2\x80\xA8", "\\u200f\\u061c\\u2028"},
      {"\x9B"
       "2J \xFF",
       "\\x9b2J \\xff"},           // the same as one byte, and a byte that is not UTF-8
      {"\xE2\x80", "\\xe2\\x80"},  // truncated
      {"\xC0\x9B", "\\xc0\\x9b"},  // an overlong form
  };
  for (const Row& row : rows) {
    CHECK(printable(row.text) == row.shown);
    CHECK(printable(row.shown) == row.shown);
  }
}

TEST_CASE("text: a value in a message is on one line and no longer than it may be") {
  CHECK(excerpt("short") == "short");
  CHECK(excerpt("two\nlines\t\x1b") == "two\\nlines\\t\\u001b");
  CHECK(excerpt(std::string(101, 'x')) == std::string(100, 'x') + "… (101 bytes)");
  CHECK(excerpt(std::string(100, 'x')) == std::string(100, 'x'));
  // A character is not cut in two.
  CHECK(excerpt("ab\xE6\x97\xA5", 4) == "ab… (5 bytes)");
  CHECK(excerpt("ab\xE6\x97\xA5", 5) == "ab\xE6\x97\xA5");
  CHECK(shortened("two\nlines", 5) == "two\nl… (9 bytes)");
}

}  // namespace melflow::text_test
