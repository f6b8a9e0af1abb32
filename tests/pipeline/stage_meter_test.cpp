// The cost of a stage's calls, from visits with known times.
#include "pipeline/report/stage_meter.h"

#include <doctest/doctest.h>

#include <ctime>

#include "pipeline/base/process_usage.h"

namespace melflow::stage_meter_test {
namespace {

StageMeter::Visit visit(std::int64_t took, std::int64_t cpu = -1) {
  return {.took = took, .cpu = cpu};
}

StageMeter::Visit of_file(std::int64_t took, std::size_t index) {
  return {.took = took, .index = index, .is_of_files = true};
}

}  // namespace

TEST_CASE("stage meter: files of one visit share its time equally") {
  StageMeter meter;
  meter.add({.took = 4000, .calls = 4});
  const ServiceReport s = meter.service();
  CHECK(s.calls == 4);
  CHECK(s.greatest == doctest::Approx(1e-6));
  CHECK(s.p50 == doctest::Approx(1e-6).epsilon(0.032));
}

TEST_CASE("stage meter: the processor is measured in the first 64 visits, then in one of eleven") {
  StageMeter meter;
  int measured = 0;
  for (int i = 0; i < 64 + 880; ++i) {
    const bool wants = StageMeter::wants_cpu(meter.visits());
    if (i < 64) CHECK(wants);
    measured += wants ? 1 : 0;
    // Every visit takes 100; at first half of it is processor time, then a quarter.
    meter.add(visit(100, wants ? (i < 64 ? 50 : 25) : -1));
  }
  CHECK(measured == 64 + 80);
  CHECK(meter.processor_share() == doctest::Approx((64 * 0.5 + 880 * 0.25) / 944));
}

TEST_CASE("stage meter: what is measured is not in step with batches") {
  for (const int batch : {2, 4, 8, 16, 32}) {
    CAPTURE(batch);
    StageMeter meter;
    // The visit that completes a batch waits; all others compute.
    const int visits = 64 + 11 * 32;
    for (int i = 0; i < visits; ++i) {
      const bool waits = i % batch == 0;
      meter.add(visit(100, StageMeter::wants_cpu(meter.visits()) ? (waits ? 0 : 100) : -1));
    }
    CHECK(meter.processor_share() == doctest::Approx(1 - 1.0 / batch).epsilon(0.02));
  }
}

TEST_CASE("stage meter: a processor is never at work for longer than the visit") {
  StageMeter meter;
  CHECK(meter.processor_share() == 0);
  meter.add(visit(100));
  CHECK(meter.processor_share() == 0);
  meter.add(visit(100, 130));
  CHECK(meter.processor_share() == 1);
}

TEST_CASE("stage meter: the five longest visits, the longest first") {
  StageMeter meter;
  for (std::size_t i = 0; i < 100; ++i)
    meter.add(of_file(static_cast<std::int64_t>((i * 37) % 100) * 1'000'000, i));
  meter.add(visit(1'000'000'000));  // without files
  const std::vector<SlowVisit> slow = meter.slowest();
  REQUIRE(slow.size() == 5);
  for (std::size_t k = 0; k < 5; ++k) {
    CAPTURE(k);
    CHECK(slow[k].seconds == doctest::Approx(1e-3 * static_cast<double>(99 - k)));
    CHECK((slow[k].index * 37) % 100 == 99 - k);
  }
}

TEST_CASE("stage meter: the thread's own processor time goes on while it works") {
  const std::int64_t before = StageMeter::thread_cpu();
  std::int64_t now = before;
  while (now == before) now = StageMeter::thread_cpu();
  CHECK(now > before);
}

TEST_CASE("process usage: the difference of two is what lies between them") {
  const ProcessUsage before = process_usage();
  ProcessUsage used;
  while (used.cpu_seconds() == 0) used = process_usage() - before;
  CHECK(used.user_seconds >= 0);
  CHECK(used.system_seconds >= 0);
  CHECK(used.minor_faults >= 0);
  CHECK(used.has_disk == before.has_disk);
  CHECK((ProcessUsage{.major_faults = 7, .has_disk = true, .disk_read_bytes = 100} -
         ProcessUsage{.major_faults = 3, .has_disk = true, .disk_read_bytes = 30})
            .disk_read_bytes == 70);
}

}  // namespace melflow::stage_meter_test
