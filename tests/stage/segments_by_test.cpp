// segments_by alone; whole pipelines with it are in tests/jobs/results_test.cpp.
#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <vector>

#include "pipeline/run/stage_runner.h"
#include "stages/facts.h"
#include "stages/items.h"
#include "stages/waveform_blocks.h"

namespace melflow::segments_by_test {

namespace {

// Returns what becomes of samples 100 to 200 of a recording in which `marked` is marked.
Streamed<Waveform> cut(const std::vector<Stretch>& marked) {
  StageRunner runner("segments_by");
  Properties given;
  given.set(property::kIsMarked, true);
  REQUIRE(runner.plan(given).errors.empty());
  auto block = std::make_shared<Waveform>(*waveform(std::vector<float>(100), 16000).front());
  block->start = 100;
  block->marked = marked;
  return runner.single<Waveform, Waveform>(std::move(block));
}

}  // namespace

TEST_CASE("segments_by: the stretches of a block, at its bounds too") {
  const auto out = cut({{100, 130}, {130, 140}, {150, 200}});
  REQUIRE(out.ok());
  std::vector<std::int64_t> counts;
  for (const auto& block : out.blocks) counts.push_back(block->samples.count);
  CHECK(counts == std::vector<std::int64_t>{30, 10, 50});
}

TEST_CASE("segments_by: stretches outside the block fail the recording") {
  for (const auto& [begin, end] : std::vector<std::pair<std::int64_t, std::int64_t>>{
           {0, 50}, {99, 150}, {150, 201}, {300, 400}, {160, 150}}) {
    const auto out = cut({{begin, end}});
    CHECK(out.blocks.empty());
    CHECK(out.entry.outcome == Outcome::failed);
    CHECK_MESSAGE(out.entry.reason.find("are marked in a block of samples 100 to 200; a stage") !=
                      std::string::npos,
                  out.entry.reason);
  }
  CHECK(cut({{110, 150}, {140, 160}}).entry.outcome == Outcome::failed);
}

}  // namespace melflow::segments_by_test
