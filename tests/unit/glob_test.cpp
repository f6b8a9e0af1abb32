#include "stages/corpus/glob.h"

#include <doctest/doctest.h>

namespace glob_test {

using namespace melflow;

TEST_CASE("glob: patterns and paths") {
  struct Row {
    const char* pattern;
    const char* path;
    bool matches;
  };
  const Row rows[] = {
      // Without a '/', the last component counts, wherever the file is.
      {"*.wav", "a.wav", true},
      {"*.wav", "x/y/a.wav", true},
      {"*.wav", "a.wav/b.flac", false},
      {"*.wav", "a.wave", false},
      {"*.wav", ".wav", true},
      {"a.wav", "x/a.wav", true},
      {"a.wav", "x/ba.wav", false},
      {"*", "x/a", true},
      {"*.tar.gz", "a.gz", false},
      {"*.tar.gz", "a.b.tar.gz", true},
      {"*a*.wav", "bac.wav", true},
      {"*a*.wav", "b.wav", false},
      {"*.w?v", "a.wiv", true},
      {"*.w?v", "a.wv", false},
      {"*\xE9.wav", "x/d\xE9.wav", true},
      {"*\xE9.wav", "x/d\xE8.wav", false},
      // Case does not matter.
      {"*.wav", "A.WAV", true},
      {"*[.WAV", "x/a[.wav", true},
      {"*.WaV", "x/a.wAv", true},
      {"Train/*.wav", "TRAIN/a.wav", true},
      {"[a-c]*.wav", "B1.wav", true},
      // '*', '?' and '[]' stay within a component.
      {"x/*.wav", "x/a.wav", true},
      {"x/*.wav", "x/y/a.wav", false},
      {"x/*.wav", "a.wav", false},
      {"*/a.wav", "x/a.wav", true},
      {"*/a.wav", "a.wav", false},
      {"*/a.wav", "x/y/a.wav", false},
      {"x/?.wav", "x/a.wav", true},
      {"x/?.wav", "x/ab.wav", false},
      {"x/[!a]*.wav", "x/b.wav", true},
      {"x/[!a]*.wav", "x/a.wav", false},
      {"a\\*.wav", "a*.wav", true},
      {"a\\*.wav", "ab.wav", false},
      // '**' is any number of folders, none too.
      {"**/*.wav", "a.wav", true},
      {"**/*.wav", "x/y/z/a.wav", true},
      {"x/**/*.wav", "x/a.wav", true},
      {"x/**/*.wav", "x/y/z/a.wav", true},
      {"x/**/*.wav", "y/x/a.wav", false},
      {"**/x/*.wav", "x/a.wav", true},
      {"**/x/*.wav", "y/z/x/a.wav", true},
      {"**/x/*.wav", "y/x/z/a.wav", false},
      {"**/x/**/a.wav", "b/x/c/x/d/a.wav", true},
      {"x/**", "x/a.wav", true},
      {"x/**", "x/y/a.wav", true},
      {"x/**", "y/a.wav", false},
      {"**/x*/**", "xy/a.wav", true},
      {"**/x*/**", "y/x1/z/a.wav", true},
      {"**/x*/**", "y/z/a.wav", false},
      {"**", "a.wav", true},
      {"**", "x/y/a.wav", true},
      {"**/**", "x/y/a.wav", true},
      // '**' inside a name is a '*'.
      {"a**.wav", "abc.wav", true},
      // Slashes too many or in front change nothing.
      {"/x//*.wav", "x/a.wav", true},
      {"x/*.wav/", "x/a.wav", true},
      {"**/*.wav", "x//a.wav", true},
      // Nothing matches nothing.
      {"", "a.wav", false},
      {"*.wav", "", false},
  };
  for (const Row& row : rows) {
    CAPTURE(row.pattern);
    CAPTURE(row.path);
    CHECK(Glob(row.pattern).matches(row.path) == row.matches);
  }
}

TEST_CASE("glob: many '**' on a long path end in time") {
  std::string path;
  for (int i = 0; i < 40; ++i) path += "a/";
  CHECK_FALSE(Glob("**/a/**/a/**/a/**/b.wav").matches(path + "c.wav"));
}

TEST_CASE("glob: patterns that take every name") {
  for (const char* pattern : {"*", "**", "x/*", "x/**", "x/**/*", "**/"}) {
    CAPTURE(pattern);
    CHECK(Glob(pattern).takes_every_name());
  }
  for (const char* pattern : {"", "x", "*.wav", "**/*.wav", "**/x", "x*", "?*"}) {
    CAPTURE(pattern);
    CHECK_FALSE(Glob(pattern).takes_every_name());
  }
}

}  // namespace glob_test
