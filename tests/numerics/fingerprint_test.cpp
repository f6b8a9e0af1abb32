// Words of the stage fingerprint beside those of numpy (tests/golden/make_fingerprint.py), and the
// search for stretches that recordings share beside stretches that were planted.
#include <doctest/doctest.h>

#include <bit>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "pipeline/base/problem.h"
#include "stages/fingerprint/matches.h"
#include "stages/fingerprint/words.h"
#include "tests/support/source_path.h"
#include "tests/support/temp_folder.h"

namespace melflow::test::fingerprint_test {
namespace {

using namespace melflow::fingerprint;
using Words = std::vector<std::uint32_t>;

std::vector<float> noise(std::size_t count) {
  std::vector<float> out;
  std::uint32_t state = 1;
  for (std::size_t i = 0; i < count; ++i) {
    state = state * 1664525U + 1013904223U;
    out.push_back(static_cast<float>(static_cast<int>(state >> 16) - 32768) / 32768);
  }
  return out;
}

Words words_of_samples(const std::vector<float>& samples) {
  Words out(static_cast<std::size_t>(words_of(static_cast<std::int64_t>(samples.size()))));
  Kernel().compute(samples.data(), static_cast<std::int64_t>(samples.size()),
                   static_cast<std::int64_t>(out.size()),
                   reinterpret_cast<std::int32_t*>(out.data()));
  return out;
}

int bits_that_differ(const Words& a, const Words& b) {
  REQUIRE(a.size() == b.size());
  int out = 0;
  for (std::size_t i = 0; i < a.size(); ++i) out += std::popcount(a[i] ^ b[i]);
  return out;
}

TEST_CASE("fingerprint: words are those of numpy") {
  std::ifstream file(source_path("tests/golden/fingerprint.json"));
  const Words expected = nlohmann::json::parse(file)["words"].get<Words>();
  const Words words = words_of_samples(noise(kSpan + (expected.size() - 1) * kHop));
  // A difference near 0 has another sign in single precision.
  CHECK(bits_that_differ(words, expected) <= 2);
}

TEST_CASE("fingerprint: neither level nor where a computation begins changes a word") {
  std::vector<float> samples = noise(kSpan + 2000 * kHop);
  const Words words = words_of_samples(samples);
  Words later(words.begin() + 777, words.end());
  CHECK(words_of_samples({samples.begin() + 777 * kHop, samples.end()}) == later);
  for (float& x : samples) x *= 0x1p-10F;
  CHECK(words_of_samples(samples) == words);
}

TEST_CASE("fingerprint: silence gives 0, which is no evidence") {
  for (const std::uint32_t word : words_of_samples(std::vector<float>(20000))) CHECK(word == 0);
  const Words words{0, 1, 2, 2, 2, 2, 3};
  CHECK_FALSE(is_evidence(words, 0));
  CHECK(is_evidence(words, 4));
  CHECK_FALSE(is_evidence(words, 5));
  CHECK(is_evidence(words, 6));
}

TEST_CASE("fingerprint: a short recording is padded to one word") {
  CHECK(words_of(0) == 0);
  CHECK(words_of(1) == 1);
  CHECK(words_of(kSpan) == 1);
  CHECK(words_of(kSpan + kHop) == 2);
  CHECK(words_of_samples(noise(100)).size() == 1);
}

struct Corpus final : WordSource {
  std::vector<Words> list;
  [[nodiscard]] std::size_t recordings() const override { return list.size(); }
  void read(std::size_t r, Words& words) const override { words = list[r]; }
};

Words random_words(std::size_t count, unsigned seed) {
  std::mt19937 random(seed);
  Words out(count);
  for (std::uint32_t& word : out) word = static_cast<std::uint32_t>(random());
  return out;
}

// Copies words to another place, with about one bit of ten changed.
void plant(const Words& from, std::size_t begin, std::size_t count, Words& to, std::size_t at) {
  std::mt19937 random(static_cast<unsigned>(at));
  for (std::size_t i = 0; i < count; ++i) {
    std::uint32_t flipped = 0;
    for (int b = 0; b < 32; ++b) flipped |= static_cast<std::uint32_t>(random() % 10 == 0) << b;
    to[at + i] = from[begin + i] ^ flipped;
  }
}

TEST_CASE("matches: a planted stretch is found at its place, whatever the memory") {
  Corpus corpus;
  for (unsigned i = 0; i < 40; ++i) corpus.list.push_back(random_words(1000, i));
  plant(corpus.list[3], 100, 600, corpus.list[30], 350);
  plant(corpus.list[5], 0, 100, corpus.list[31], 0);  // too short
  const TempFolder folder;
  for (const std::size_t memory : {std::size_t{1} << 20, std::size_t{1} << 12}) {
    MatchOptions options;
    options.memory = memory;
    options.folder = folder.path();
    const std::vector<Match> found = find_matches(corpus, options);
    REQUIRE(found.size() == 1);
    const Match& match = found[0];
    CHECK(match.a == 3);
    CHECK(match.b == 30);
    CHECK(match.begin_b - match.begin_a == 250);
    CHECK(std::abs(match.begin_a - 100) <= 3);
    CHECK(std::abs(match.begin_a + match.words - 700) <= 3);
    CHECK(match.error > 0.08);
    CHECK(match.error < 0.12);
  }
  MatchOptions old;
  old.folder = folder.path();
  old.new_from = 31;
  CHECK(find_matches(corpus, old).empty());
  old.new_from = 30;
  CHECK(find_matches(corpus, old).size() == 1);
}

TEST_CASE("matches: what is in too many recordings is no evidence") {
  Corpus corpus;
  const Words jingle = random_words(400, 99);
  for (unsigned i = 0; i < 5; ++i) {
    corpus.list.push_back(random_words(1000, i));
    std::copy(jingle.begin(), jingle.end(), corpus.list.back().begin() + 10 * i);
  }
  const TempFolder folder;
  MatchOptions options;
  options.folder = folder.path();
  CHECK(find_matches(corpus, options).size() == 10);
  options.common = 4;
  CHECK(find_matches(corpus, options).empty());
}

TEST_CASE("matches: a folder that cannot be written is named") {
  Corpus corpus;
  corpus.list.push_back(random_words(1000, 1));
  MatchOptions options;
  options.memory = 1;
  options.folder = "/no/such/folder";
  CHECK_THROWS_WITH_AS(find_matches(corpus, options), doctest::Contains("/no/such/folder/places"),
                       RunError);
}

}  // namespace
}  // namespace melflow::test::fingerprint_test
