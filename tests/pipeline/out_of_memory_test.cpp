// Memory runs out in the graph itself, not in a stage: the run ends with a report of that.
#include <doctest/doctest.h>

#include <atomic>
#include <cstdlib>
#include <new>

#include "pipeline/run/work.h"
#include "tests/pipeline/test_graph.h"
#include "tests/support/watchdog.h"

namespace {

constexpr int kNever = -1;
std::atomic<std::size_t> counted{sizeof(melflow::Work)};  // size of the requests that may fail
std::atomic<int> works_left{kNever};                      // this many succeed before one fails

bool fails(std::size_t size) {
  if (works_left.load(std::memory_order_relaxed) == kNever || size != counted) return false;
  return works_left.fetch_sub(1) == 0;
}

void* made(std::size_t size) { return fails(size) ? nullptr : std::malloc(size == 0 ? 1 : size); }

}  // namespace

// Not inlined, because the compiler would then report new and free as a mismatch.
[[gnu::noinline]] void* operator new(std::size_t size) {
  if (void* p = made(size)) return p;
  throw std::bad_alloc();
}
[[gnu::noinline]] void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  return made(size);
}
[[gnu::noinline]] void operator delete(void* p) noexcept { std::free(p); }
[[gnu::noinline]] void operator delete(void* p, std::size_t) noexcept { std::free(p); }
[[gnu::noinline]] void operator delete(void* p, const std::nothrow_t&) noexcept { std::free(p); }

namespace melflow::test::out_of_memory_test {
namespace {

// All ways in which a node makes a message: the source, blocks of an item, an unfinished batch, and
// copies for two branches.
Graph all_ways(const std::string& thread) {
  return Graph("files: numbers items=5")
      .node("a", "step", "files", {{thread, "true"}, {"concurrency", "2"}})
      .nodes(
          "cut: expand < a blocks=4; g: gather < cut batch=5; "
          "out: batch_keep < g; b: step < cut; other: keep < b");
}

}  // namespace

TEST_CASE("out of memory: a run that can make no message ends, and says why") {
  const Watchdog watchdog("out of memory");
  for (const char* thread : {"any_order", "own_threads", "elsewhere"})
    for (const int workers : {1, 3}) {
      CAPTURE(std::string(thread));
      CAPTURE(workers);
      int failed = 0;
      for (int makes = 0;; ++makes) {
        CAPTURE(makes);
        World world;
        world.check_edges = false;
        Runner runner(test::make_plan(all_ways(thread).workers(workers), world));
        works_left = makes;
        const RunReport report = runner.run();
        const bool has_failed = works_left.exchange(kNever) < 0;
        if (!has_failed) {
          CHECK(report.ending == Ending::complete);
          CHECK(report.counts.ok == 5);
          break;
        }
        ++failed;
        CHECK(report.ending == Ending::failed);
        CHECK(report.error.find("out of memory; lower memory.host") != std::string::npos);
        CHECK(report.counts.failed == 0);
      }
      CHECK(failed > 15);
    }
}

// It may be asked for under a lock that what is told of a release takes, too.
TEST_CASE("out of memory: a reservation for which there is none takes and releases nothing") {
  MemoryBudget budget(1000, 0);
  int told = 0;
  budget.on_release([&] { ++told; });
  const auto held = Reservation::try_make(budget, 700, Claim::later);
  REQUIRE_FALSE(Reservation::try_make(budget, 700, Claim::later));  // now a release is told
  // Its size with the counts of a shared pointer is the library's own matter.
  bool has_failed = false;
  for (std::size_t size = sizeof(Reservation); size <= sizeof(Reservation) + 64; ++size) {
    counted = size;
    works_left = 0;
    try {
      (void)Reservation::try_make(budget, 100, Claim::later);
    } catch (const std::bad_alloc&) {
      has_failed = true;
      CHECK(told == 0);
      CHECK(budget.used() == 700);
    }
    works_left = kNever;
    told = 0;
    CHECK_FALSE(Reservation::try_make(budget, 700, Claim::later));
  }
  counted = sizeof(Work);
  CHECK(has_failed);
  budget.on_release({});
}

}  // namespace melflow::test::out_of_memory_test
