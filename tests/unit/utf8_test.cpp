#include "pipeline/base/text.h"

#include <doctest/doctest.h>

namespace melflow::utf8_test {

TEST_CASE("utf8: text stays, other bytes become what os.fsdecode() gives") {
  const std::pair<std::string, std::string> table[] = {
      {"", ""},
      {"plain \"\\n\" text", "plain \"\\n\" text"},
      {"\xC3\xA9 \xED\x95\x9C \xF0\x9F\x90\x95 \xF4\x8F\xBF\xBF \xED\x9F\xBF",
       "\xC3\xA9 \xED\x95\x9C \xF0\x9F\x90\x95 \xF4\x8F\xBF\xBF \xED\x9F\xBF"},
      {"d\xE9j\xE0", "d\\udce9j\\udce0"},
      {"\x80\xFF", "\\udc80\\udcff"},
      {"\xE2\x82", "\\udce2\\udc82"},                        // ends too early
      {"\xE2\x82x", "\\udce2\\udc82x"},                      // ends too early
      {"\xF0\x9F\x90", "\\udcf0\\udc9f\\udc90"},             // ends too early
      {"\xC0\xAF", "\\udcc0\\udcaf"},                        // a longer form than needed
      {"\xC1\xBF", "\\udcc1\\udcbf"},                        // a longer form than needed
      {"\xE0\x9F\xBF", "\\udce0\\udc9f\\udcbf"},             // a longer form than needed
      {"\xF0\x8F\xBF\xBF", "\\udcf0\\udc8f\\udcbf\\udcbf"},  // a longer form than needed
      {"\xED\xA0\x80", "\\udced\\udca0\\udc80"},             // a surrogate
      {"\xF4\x90\x80\x80", "\\udcf4\\udc90\\udc80\\udc80"},  // after the last character
      {"\xF5\x80\x80\x80", "\\udcf5\\udc80\\udc80\\udc80"},  // after the last character
  };
  for (const auto& row : table) {
    CAPTURE(row.second);
    CHECK(utf8_or_escaped(row.first) == row.second);
  }
}

TEST_CASE("utf8: only what stands for a byte is taken out again") {
  for (const char* text : {R"(\\udce9)", R"(\u00e9)", R"(\udc7f)", R"(\udd80)", R"(\udce)", R"(\")",
                           R"(\\)", R"(\\\\udce9)"}) {
    CAPTURE(std::string(text));
    CHECK(without_escaped_bytes(text) == text);
  }
  CHECK(without_escaped_bytes(R"(\\\udce9\udc80x\n\udcff)") == R"(\\\ufffd\ufffdx\n\ufffd)");
}

}  // namespace melflow::utf8_test
