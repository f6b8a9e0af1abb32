// A deliberate race, to show that ThreadSanitizer reports one despite tests/support/tsan.supp. Runs
// only on request; under ThreadSanitizer ctest requests it and expects the report.
#include <doctest/doctest.h>

#include <condition_variable>
#include <mutex>

#include "tests/pipeline/test_graph.h"
#include "tests/support/watchdog.h"

namespace seeded_race_test {

using namespace melflow;

TEST_CASE("seeded race: two items in one stage change the same number" * doctest::skip()) {
  const test::Watchdog watchdog("seeded race");
  test::World world;
  std::mutex mutex;
  std::condition_variable wake;
  int missing = 2;
  long number = 0;
  world.hooks["a"] = [&](const test::Number&, ItemContext*) -> std::optional<ItemError> {
    {
      // Only when both threads are inside at the same time does nothing in the graph order them.
      std::unique_lock lock(mutex);
      if (--missing <= 0) wake.notify_all();
      wake.wait(lock, [&] { return missing <= 0; });
    }
    ++number;
    return {};
  };
  test::run(test::Graph("files: numbers; a: step < files concurrency=2; "
                        "out: keep < a")
                .workers(2),
            world);
  CHECK(number > 0);
}

}  // namespace seeded_race_test
