// Texts and names as Kaldi reads them: utils/validate_text.pl refuses white space of Unicode.
#include <doctest/doctest.h>

#include <string>

#include "stages/output/formats/kaldi_ark.h"
#include "stages/output/recording_names.h"

namespace melflow::test::kaldi_words_test {

TEST_CASE("kaldi words: all white space that Python's str.split() knows is a single blank") {
  CHECK(kaldi_words("plain words", ' ') == "plain words");
  CHECK(kaldi_words(" \t two\r\nwords \v", ' ') == "two words");
  for (const char* space : {"\u00a0", "\u3000", "\u2028", "\u0085", "\u2003", "\u1680", "\x1c"}) {
    CAPTURE(std::string(space));
    CHECK(kaldi_words(std::string("a") + space + " " + space + "b" + space, ' ') == "a b");
    CHECK(kaldi_words(std::string(space) + "a" + space + "b", '_') == "a_b");
  }
  // No white space: zero width space, a byte order mark, letters, and bytes that are no UTF-8.
  for (const char* text : {"a\u200bb", "\ufeffa", "\u65e5\u672c", "caf\xe9", "\xc2", "\xa0"})
    CHECK(kaldi_words(text, ' ') == text);
}

TEST_CASE("recording names: white space of Unicode is escaped as a blank is") {
  CHECK(as_recording_name("a b.wav") == "a%20b%2Ewav");
  CHECK(as_recording_name("a\u3000b") == "a%E3%80%80b");
  CHECK(as_recording_name("\u65e5\u672c/\xe9") == "\u65e5\u672c/\xe9");
}

}  // namespace melflow::test::kaldi_words_test
