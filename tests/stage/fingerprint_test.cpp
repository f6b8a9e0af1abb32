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

// Blocks as segment without a length gives them.
std::vector<std::shared_ptr<const Windows>> cut(const std::vector<float>& samples,
                                                std::int64_t block) {
  Bench segment("segment");
  Requirements below;
  below.set(requirement::kContext, std::int64_t{fingerprint::kSpan});
  segment.plan({}, below);
  return segment.stream<Windows>(waveform(samples, fingerprint::kRate, block)).blocks;
}

std::vector<std::int32_t> rows(const std::vector<float>& samples, std::int64_t block) {
  Bench bench("fingerprint");
  CHECK(bench.plan().errors.empty());
  const auto made = bench.stream<MelBatch>(cut(samples, block));
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
  const std::vector<std::int32_t> whole = rows(samples, 0);
  CHECK(static_cast<std::int64_t>(whole.size()) == fingerprint::words_of(50'000));
  for (const std::int64_t block : {100, 999, 2256, 10'007}) CHECK(rows(samples, block) == whole);
}

TEST_CASE("fingerprint: a recording shorter than a word's span leaves one row") {
  CHECK(rows(test_signal(300), 0).size() == 1);
  CHECK(rows(test_signal(300), 100) == rows(test_signal(300), 0));
}

TEST_CASE("fingerprint: another rate and windows are refused before the run") {
  Bench bench("fingerprint");
  Properties given;
  given.set(property::kSampleRate, 16000.0);
  given.set(property::kWindow, std::int64_t{4000});
  const std::vector<std::string> errors = bench.plan(given).errors;
  REQUIRE(errors.size() == 2);
  CHECK(errors[0].find("takes samples at 4000 Hz, but the input has 16000 Hz; put a node {stage: "
                       "resample, rate: 4000} before it") != std::string::npos);
  CHECK(errors[1].find("takes whole recordings, but they are cut") != std::string::npos);
}

}  // namespace
}  // namespace melflow::test::fingerprint_stage_test
