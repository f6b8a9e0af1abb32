#include "stages/corpus/path_parts.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cctype>
#include <random>
#include <string>
#include <string_view>
#include <vector>

namespace melflow::glob_test {
namespace {

// The definition, word for word: a star is tried with every length. Only for ASCII.
bool matches_name(std::string_view pattern, std::string_view name) {
  if (pattern.empty()) return name.empty();
  if (pattern[0] == '*')
    return matches_name(pattern.substr(1), name) ||
           (!name.empty() && matches_name(pattern, name.substr(1)));
  return !name.empty() &&
         (pattern[0] == '?' || std::tolower(pattern[0]) == std::tolower(name[0])) &&
         matches_name(pattern.substr(1), name.substr(1));
}

using Parts = std::vector<std::string>;
bool matches_all(const Parts& pattern, const Parts& path) {
  if (pattern.empty()) return path.empty();
  const Parts rest(pattern.begin() + 1, pattern.end());
  const Parts below(path.empty() ? path.end() : path.begin() + 1, path.end());
  if (pattern[0] == "**")
    return matches_all(rest, path) || (!path.empty() && matches_all(pattern, below));
  return !path.empty() && matches_name(pattern[0], path[0]) && matches_all(rest, below);
}

Parts components(const std::string& path) {
  Parts out(1);
  for (const char c : path)
    c == '/' ? static_cast<void>(out.emplace_back()) : out.back().push_back(c);
  out.erase(std::remove(out.begin(), out.end(), ""), out.end());
  return out;
}

}  // namespace

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
      // '?' matches a UTF-8 character, or a byte that is none.
      {"?.wav", "\xC3\xA9.wav", true},
      {"??.wav", "\xC3\xA9.wav", false},
      {"*??.wav", "\xC3\xA9.wav", false},
      {"d?.wav", "d\xE9.wav", true},
      {"*\xE9.wav", "x/d\xE9.wav", true},
      {"*\xE9.wav", "x/d\xE8.wav", false},
      // Case does not matter.
      {"*.wav", "A.WAV", true},
      {"*[.WAV", "x/a[.wav", true},
      {"*.WaV", "x/a.wAv", true},
      {"Train/*.wav", "TRAIN/a.wav", true},
      // Brackets and backslashes are ordinary characters.
      {"track [1].wav", "x/Track [1].wav", true},
      {"[1].wav", "1.wav", false},
      {"[a-c]*.wav", "b1.wav", false},
      {"[a-c]*.wav", "[A-C]1.wav", true},
      {"x/[!a]?.wav", "x/[!a]1.wav", true},
      {"x/[!a]*.wav", "x/b.wav", false},
      {"a\\*.wav", "a\\b.wav", true},
      {"a\\*.wav", "a*.wav", false},
      // '*' and '?' stay within a component.
      {"x/*.wav", "x/a.wav", true},
      {"x/*.wav", "x/y/a.wav", false},
      {"x/*.wav", "a.wav", false},
      {"*/a.wav", "x/a.wav", true},
      {"*/a.wav", "a.wav", false},
      {"*/a.wav", "x/y/a.wav", false},
      {"x/?.wav", "x/a.wav", true},
      {"x/?.wav", "x/ab.wav", false},
      // '**' matches any number of folders, including none.
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
      // '**' inside a name acts like '*'.
      {"a**.wav", "abc.wav", true},
      // Repeated and leading slashes change nothing.
      {"/x//*.wav", "x/a.wav", true},
      {"x/*.wav/", "x/a.wav", true},
      {"**/*.wav", "x//a.wav", true},
      // Nothing matches an empty pattern or path.
      {"", "a.wav", false},
      {"*.wav", "", false},
  };
  for (const Row& row : rows) {
    CAPTURE(row.pattern);
    CAPTURE(row.path);
    CHECK(Glob(row.pattern).matches(row.path) == row.matches);
  }
}

TEST_CASE("glob: what the definition says, of short patterns and paths by chance") {
  std::mt19937 random(1);
  const auto text = [&random](std::string_view letters) {
    std::string out;
    for (std::size_t n = random() % 9; n > 0; --n) out += letters[random() % letters.size()];
    return out;
  };
  int matches = 0;
  for (int n = 0; n < 50000; ++n) {
    const std::string pattern = text("aB[*?/*"), path = text("ab[/") + "ab"[random() % 2];
    CAPTURE(pattern);
    CAPTURE(path);
    const bool is_match = Glob(pattern).matches(path);
    matches += is_match ? 1 : 0;
    auto parts = components(pattern);
    if (parts.size() == 1) parts.insert(parts.begin(), "**");
    REQUIRE(is_match == matches_all(parts, components(path)));
  }
  CHECK(matches > 1000);
}

TEST_CASE("glob: time grows with pattern and path, not with their combinations") {
  std::string folders, pattern;
  for (int i = 0; i < 40; ++i) folders += "a/";
  for (int i = 0; i < 20; ++i) pattern += "**/a/";
  CHECK_FALSE(Glob(pattern + "b.wav").matches(folders + "c.wav"));
  CHECK(Glob(pattern + "?.wav").matches(folders + "c.wav"));
  std::string stars;
  for (int i = 0; i < 20; ++i) stars += "*a";
  const std::string name(250, 'a');
  CHECK_FALSE(Glob("x/" + stars + "b").matches("x/" + name));
  CHECK(Glob("x/" + stars).matches("x/" + name));
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

}  // namespace melflow::glob_test
