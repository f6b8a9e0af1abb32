// The stage fingerprint: blocks, lengths and what it refuses. That words are right is in
// tests/numerics/fingerprint_test.cpp.
#include <doctest/doctest.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "stages/facts.h"
#include "stages/fingerprint/words.h"
#include "tests/stage/bench.h"
#include "tests/support/audio_files.h"
#include "tests/support/printing.h"

namespace melflow::test::fingerprint_stage_test {
namespace {

std::vector<std::int32_t> rows(const std::vector<float>& samples, int rate, std::int64_t block) {
  Bench bench("fingerprint");
  CHECK(bench.plan().errors.empty());
  const auto made = bench.stream<MelBatch>(waveform(samples, rate, block));
  REQUIRE(made.ok());
  std::vector<std::int32_t> out;
  for (const auto& batch : made.blocks) {
    const MelPart& part = *batch->parts[0];
    CHECK(part.type == NumberType::int32);
    CHECK(part.first_row == static_cast<std::int64_t>(out.size()));
    const auto* from = part.data->as<std::int32_t>();
    out.insert(out.end(), from, from + part.row_count);
  }
  return out;
}

TEST_CASE("fingerprint: rows do not depend on the size of blocks") {
  const std::vector<float> samples = test_signal(50'000);
  for (const int rate : {4000, 16000, 44100}) {
    CAPTURE(rate);
    const std::vector<std::int32_t> whole = rows(samples, rate, 0);
    CHECK(static_cast<std::int64_t>(whole.size()) == fingerprint::words_of(50'000, rate));
    for (const std::int64_t block : {100, 999, 2256, 10'007})
      CHECK(rows(samples, rate, block) == whole);
  }
}

TEST_CASE("fingerprint: a recording shorter than a word's span leaves one row") {
  CHECK(rows(test_signal(300), 4000, 0).size() == 1);
  CHECK(rows(test_signal(300), 4000, 100) == rows(test_signal(300), 4000, 0));
}

TEST_CASE("fingerprint: rates below 4000 Hz are refused, before the run where they are known") {
  Bench bench("fingerprint");
  Properties given;
  given.set(property::kSampleRate, 3000.0);
  const std::vector<std::string> errors = bench.plan(given).errors;
  REQUIRE(errors.size() == 1);
  CHECK(errors[0].find("the input has 3000 Hz; fingerprints are of what is heard from 300 to 1800 "
                       "Hz and take 4000 Hz or more") != std::string::npos);
  Bench unknown("fingerprint");
  CHECK(unknown.plan().errors.empty());
  const auto made = unknown.stream<MelBatch>(waveform(test_signal(300), 3999, 0));
  REQUIRE_FALSE(made.ok());
  CHECK(made.entry.reason.find("is sampled at 3999 Hz; fingerprints") != std::string::npos);
}

}  // namespace
}  // namespace melflow::test::fingerprint_stage_test
