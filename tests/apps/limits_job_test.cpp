// Runs in which one resource is made to hold the others back, and the limit that the report names.
// Stages burn processor time or wait for each other; how long that takes on a busy machine does not
// matter.
#include <doctest/doctest.h>

#include <chrono>
#include <condition_variable>
#include <ctime>
#include <functional>
#include <mutex>

#include "apps/profile/limits.h"
#include "apps/report/limits_text.h"
#include "pipeline/base/cpu.h"
#include "pipeline/run/compose.h"
#include "tests/support/watchdog.h"

namespace melflow::limits_job_test {

using test::Watchdog;

namespace {

struct Piece {
  static constexpr const char* kName = "piece";
  [[nodiscard]] static std::size_t bytes() { return 1000; }
  [[nodiscard]] static std::size_t rows() { return 1; }
};

// Uses a core for this much of the thread's own processor time.
void burn(double milliseconds) {
  const auto spent = [] {
    timespec t{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return 1e3 * static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_nsec);
  };
  const double until = spent() + milliseconds;
  while (spent() < until) {
  }
}

std::vector<std::string> names(std::size_t count) {
  std::vector<std::string> out;
  for (std::size_t i = 0; i < count; ++i) out.push_back("piece" + std::to_string(i));
  return out;
}

struct Ran {
  RunReport report;
  Limits limits;
};

// Runs a stage between a source of `pieces` pieces and a sink.
Ran ran(std::size_t pieces, int workers, const std::function<void()>& work,
        const OptionList& options = {}) {
  Compose graph(Registry{});
  graph.source<Piece>("pieces", names(pieces), [](std::size_t) { return Piece{}; })
      .map<Piece, Piece>(
          "stage", "pieces",
          [&](const Piece& p) {
            work();
            return p;
          },
          1, options)
      .sink<Piece>("end", "stage", [](const Piece&) {});
  graph.spec().workers = workers;
  Ran out{graph.run(), {}};
  REQUIRE(out.report.ending == Ending::complete);
  out.limits = find_limits(out.report);
  return out;
}

}  // namespace

TEST_CASE("limits of a job: one slot of a stage that computes, among workers with nothing to do") {
  const Watchdog watchdog("limits: slots");
  const Limits l = ran(60, 4, [] { burn(3); }, {{"concurrency", 1}}).limits;
  CHECK((l.cause == Cause::slots || l.cause == Cause::cores));  // cores: on a machine with one core
  if (l.cause == Cause::slots) CHECK(l.node == "stage");
  CHECK(l.heaviest == "stage");
  if (l.cause == Cause::slots && available_cpus() > 1) {
    REQUIRE_FALSE(l.hints.empty());
    CHECK(l.hints.front().sets.front().first == "stage.concurrency");
  }
}

TEST_CASE("limits of a job: one worker, where there are more cores") {
  const Watchdog watchdog("limits: workers");
  if (available_cpus() < 2) return;
  const Limits l = ran(60, 1, [] { burn(4); }).limits;
  CHECK(l.cause == Cause::workers);
  REQUIRE_FALSE(l.hints.empty());
  CHECK(l.hints.front().sets.front() ==
        std::pair<std::string, std::string>("workers", std::to_string(available_cpus())));
}

TEST_CASE("limits of a job: a worker for each core, all of them computing") {
  const Watchdog watchdog("limits: cores");
  const Limits l = ran(400, 0, [] { burn(2); }).limits;
  CHECK(l.cause == Cause::cores);
  CHECK(l.hints.empty());
}

TEST_CASE("limits of a job: workers that wait inside of a stage, and no core with them") {
  const Watchdog watchdog("limits: waiting workers");
  std::mutex mutex;
  std::condition_variable device;
  const auto wait = [&] {
    std::unique_lock lock(mutex);
    device.wait_for(lock, std::chrono::milliseconds(3), [] { return false; });
  };
  const auto [report, l] = ran(100, 2, wait);
  CAPTURE(limits_text(l, report));
  CHECK(l.cause == Cause::workers);
  REQUIRE_FALSE(l.hints.empty());
  CHECK(l.hints.front().sets.front().first == "workers");
}

TEST_CASE("limits of a job: fewer files than workers") {
  const Watchdog watchdog("limits: few files");
  const auto [report, l] = ran(2, 8, [] { burn(20); });
  CAPTURE(limits_text(l, report));
  // With two cores two files are enough, and other programs may use the cores meanwhile.
  CHECK((report.cores <= 2 || l.cause == Cause::few_files || l.cause == Cause::cores));
  for (const Hint& h : l.hints)
    for (const auto& [option, value] : h.sets) CHECK(std::stoi(value) <= 2);
}

}  // namespace melflow::limits_job_test
