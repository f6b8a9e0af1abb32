// Words of the stage fingerprint beside those of numpy (tests/golden/make_fingerprint.py), and the
// search for stretches that recordings share beside stretches that were planted.
#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "pipeline/base/problem.h"
#include "stages/features/mel/mel_kernel.h"
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

// In blocks of `block` samples; 0: at once.
Words words_of_samples(const std::vector<float>& samples, int rate = kLeastRate,
                       std::int64_t block = 0) {
  WordStream stream(std::make_shared<const Kernel>(rate, MelKernel::instruction_set()));
  std::vector<std::int32_t> words;
  const auto count = static_cast<std::int64_t>(samples.size());
  if (block == 0) block = std::max<std::int64_t>(1, count);
  for (std::int64_t at = 0; at < count; at += block)
    stream.add(samples.data() + at, std::min(block, count - at), at + block >= count, words);
  CHECK(static_cast<std::int64_t>(words.size()) == words_of(count, rate));
  return {words.begin(), words.end()};
}

double share_that_differs(const Words& a, const Words& b) {
  const std::size_t count = std::min(a.size(), b.size());
  REQUIRE(count > 0);
  CHECK(std::max(a.size(), b.size()) <= count + 1);
  double out = 0;
  for (std::size_t i = 0; i < count; ++i) out += std::popcount(a[i] ^ b[i]);
  return out / (32.0 * static_cast<double>(count));
}

TEST_CASE("fingerprint: words are those of numpy, at any rate") {
  std::ifstream file(source_path("tests/golden/fingerprint.json"));
  const auto all = nlohmann::json::parse(file);
  for (const auto& [rate, words] : all.items()) {
    CAPTURE(rate);
    const int hz = std::stoi(rate);
    const auto expected = words.get<Words>();
    const Words made = words_of_samples(noise(4 * static_cast<std::size_t>(hz)), hz);
    REQUIRE(made.size() == expected.size());
    // A difference near 0 has another sign in single precision.
    CHECK(share_that_differs(made, expected) <= 3e-4);
  }
}

TEST_CASE("fingerprint: neither level nor blocks nor where a recording begins change a word") {
  for (const int rate : {4000, 16000, 44100}) {
    CAPTURE(rate);
    std::vector<float> samples = noise(8 * static_cast<std::size_t>(rate));
    const Words words = words_of_samples(samples, rate);
    for (const std::int64_t block : {1, 77, 4096, 50'001})
      CHECK(words_of_samples(samples, rate, block) == words);
    for (float& x : samples) x *= 0x1p-10F;
    CHECK(words_of_samples(samples, rate) == words);
    // The filters are at other samples where the cut is no multiple of theirs.
    const Words later(words.begin() + 80, words.end());
    const Words cut = words_of_samples({samples.begin() + rate, samples.end()}, rate);
    CHECK(share_that_differs(cut, later) <= (rate == 4000 ? 0 : 5e-3));
  }
}

// Tones of a few harmonics that change every 0.1 s.
std::vector<float> tones(int rate, double seconds) {
  std::vector<float> out(static_cast<std::size_t>(seconds * rate));
  for (std::size_t i = 0; i < out.size(); ++i) {
    const double t = static_cast<double>(i) / rate;
    const int note = static_cast<int>(t * 10) * 7919 % 101;
    for (int h = 1; h <= 15; ++h)
      out[i] += static_cast<float>(std::sin(6.283185307179586 * h * (90 + note) * t) *
                                   (1 + (note * h * h) % 7) / 100);
  }
  return out;
}

TEST_CASE("fingerprint: the same sound has nearly equal words at every rate") {
  const Words words = words_of_samples(tones(8000, 10), 8000);
  for (const int rate : {6000, 11025, 16000, 22050, 24000, 44100, 48000, 96000}) {
    CAPTURE(rate);
    CHECK(share_that_differs(words_of_samples(tones(rate, 10), rate), words) < 0.04);
  }
  for (const int rate : {4017, 4068, 4084, 7301, 8001, 12345, 22255, 37800}) {
    CAPTURE(rate);
    CHECK(share_that_differs(words_of_samples(tones(rate, 10), rate), words) < 0.06);
  }
}

TEST_CASE("fingerprint: a sample that is no number is as silence, and nothing after it differs") {
  for (const int rate : {8000, 48000}) {
    const Words words = words_of_samples(tones(rate, 8), rate);
    for (const float wrong : {std::nanf(""), HUGE_VALF}) {
      CAPTURE(rate);
      CAPTURE(wrong);
      std::vector<float> samples = tones(rate, 8);
      samples[4 * static_cast<std::size_t>(rate)] = wrong;
      const Words made = words_of_samples(samples, rate);
      REQUIRE(made.size() == words.size());
      // Word r is of frames r to r + 40, and those from 315 to 320 have it.
      for (std::size_t r = 276; r < 320; ++r) CHECK(made[r] == 0);
      for (std::size_t r = 0; r < words.size(); ++r)
        if (r < 270 || r > 325) CHECK(made[r] == words[r]);
    }
  }
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
  CHECK(words_of(0, 4000) == 0);
  CHECK(words_of(1, 4000) == 1);
  CHECK(words_of(2256, 4000) == 1);
  CHECK(words_of(2305, 4000) == 1);
  CHECK(words_of(2306, 4000) == 2);
  CHECK(words_of(44100 * 10, 44100) == words_of(4000 * 10, 4000));
  for (const int rate : {4000, 7999, 16000, 44100, 192000}) {
    CAPTURE(rate);
    CHECK(words_of_samples(noise(100), rate).size() == 1);
    CHECK(words_of_samples(noise(1), rate).size() == 1);
  }
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
