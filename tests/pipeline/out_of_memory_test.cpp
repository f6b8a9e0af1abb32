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
std::atomic<int> works_left{kNever};  // this many can be made before one fails

// Applies to allocations of messages between nodes.
bool fails(std::size_t size) {
  if (size != sizeof(melflow::Work) || works_left.load(std::memory_order_relaxed) == kNever)
    return false;
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
  return Graph()
      .node("files", "numbers", "", {{"items", "5"}})
      .node("a", "step", "files", {{thread, "true"}, {"concurrency", "2"}})
      .node("cut", "expand", "a", {{"blocks", "4"}})
      .node("g", "gather", "cut", {{"batch", "5"}})
      .node("out", "batch_keep", "g")
      .node("b", "step", "cut")
      .node("other", "keep", "b");
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

}  // namespace melflow::test::out_of_memory_test
