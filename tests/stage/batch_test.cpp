#include <doctest/doctest.h>

#include "pipeline/stage/registry.h"
#include "tests/stage/bench.h"

namespace melflow::test::batch_test {
namespace {

std::shared_ptr<const Windows> windows(std::int64_t samples) {
  auto w = std::make_shared<Windows>();
  w->samples.count = samples;
  w->samples.type = SampleType::int16;
  w->row_count = samples / 100;
  return w;
}

// Calls the stage without a graph.
struct Collecting {
  explicit Collecting(Bench& bench)
      : stage(dynamic_cast<Combine<Windows, Batch>&>(bench.stage())),
        context(bench.run(), nothing, 0) {}
  bool push(std::shared_ptr<const Windows> in) { return *stage.push(std::move(in), context); }
  std::shared_ptr<const Batch> pull() { return *stage.pull(context); }

  Combine<Windows, Batch>& stage;
  Item nothing;
  ItemContext context;
};

}  // namespace

TEST_CASE("batch: is full by count or by bytes, whichever comes first, and keeps the order") {
  struct Row {
    const char* options;
    std::int64_t samples;
    std::size_t full_after;
  };
  const Row rows[] = {{"{files: 1}", 10, 1},
                      {"{files: 4}", 10, 4},
                      {"{files: 100, bytes: 4096}", 500, 5},  // files of 1000 bytes each
                      {"{files: 100, bytes: 4096}", 2048, 1},
                      {"{files: 3, bytes: 4096}", 10, 3}};
  for (const Row& row : rows) {
    CAPTURE(std::string(row.options));
    Bench bench("batch", row.options);
    Collecting batch(bench);
    // Runs twice: the first round must leave nothing for the second.
    for (int round = 0; round < 2; ++round) {
      std::vector<std::shared_ptr<const Windows>> given;
      for (std::size_t i = 0; i < row.full_after; ++i) {
        given.push_back(windows(row.samples));
        CHECK(batch.push(given.back()) == (i + 1 == row.full_after));
      }
      const auto out = batch.pull();
      REQUIRE(out != nullptr);
      CHECK(out->parts == given);
      CHECK(out->bytes() == row.full_after * 2 * static_cast<std::size_t>(row.samples));
      CHECK(out->rows() == row.full_after * static_cast<std::size_t>(row.samples / 100));
    }
  }
}

TEST_CASE("batch: can be taken before it is full, and is empty then") {
  Bench bench("batch", "{files: 10}");
  Collecting batch(bench);
  CHECK_FALSE(batch.push(windows(5)));
  CHECK(batch.pull()->parts.size() == 1);
  CHECK(batch.pull() == nullptr);
  CHECK(batch.stage.take(batch.context)->payload == nullptr);
}

TEST_CASE("batch: what comes behind learns how large a part is") {
  // The stage copies no samples, but rows computed from a batch are in proportion to them.
  Bench bench("batch");
  CHECK(bench.stage().output_bound({}, 100'000) >= 100'000);
}

TEST_CASE("batch: options out of range are refused") {
  for (const char* options : {"{files: 0}", "{files: 65537}", "{bytes: 4095}"}) {
    CAPTURE(std::string(options));
    CHECK_THROWS_AS(Bench("batch", options), ConfigError);
  }
}

}  // namespace melflow::test::batch_test
