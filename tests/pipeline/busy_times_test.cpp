#include "pipeline/report/busy_times.h"

#include <doctest/doctest.h>

#include <chrono>

#include "pipeline/report/visit_log.h"

namespace melflow::busy_times_test {

TEST_CASE("busy times: a stay lies in the steps that it touches, by how much it does") {
  BusyTimes times;
  times.add(2, 0.05, 0.225);
  times.add(2, 0.23, 0.25);
  times.add(0, 0.3, 0.3);
  REQUIRE(times.nodes().size() == 3);
  CHECK(times.nodes()[0].empty());
  CHECK(times.nodes()[1].empty());
  REQUIRE(times.nodes()[2].size() == 3);
  CHECK(times.nodes()[2][0] == doctest::Approx(0.05));
  CHECK(times.nodes()[2][1] == doctest::Approx(0.1));
  CHECK(times.nodes()[2][2] == doctest::Approx(0.045));
}

TEST_CASE("busy times: a long run has longer steps, and loses no time") {
  BusyTimes times;
  double sum = 0;
  for (int i = 0; i < 100'000; ++i) {
    times.add(static_cast<std::size_t>(i % 3), 0.01 * i, 0.01 * i + 0.007);
    sum += 0.007;
  }
  CHECK(times.step() == doctest::Approx(6.4));  // 1,000 s in at most 300 steps
  double found = 0;
  for (const auto& node : times.nodes()) {
    CHECK(node.size() <= BusyTimes::kMost);
    for (const double s : node) {
      CHECK(s <= times.step() + 1e-9);
      found += s;
    }
  }
  CHECK(found == doctest::Approx(sum));
  times.widen(12.8);
  CHECK(times.step() == doctest::Approx(12.8));
  times.widen(12.8);
  CHECK(times.step() == doctest::Approx(12.8));
}

TEST_CASE(
    "busy times: a log of visits has them of all visits, also of those that it does not keep") {
  const auto zero = std::chrono::steady_clock::time_point{};
  const auto at = [zero](int ms) { return zero + std::chrono::milliseconds(ms); };
  VisitLog log(1, zero);
  log.add({.began = at(10), .ended = at(30), .node = 1});
  log.add({.began = at(40), .ended = at(50), .node = 1});
  CHECK(log.left_out() == 1);
  REQUIRE(log.by_thread().size() == 1);
  CHECK(log.by_thread()[0]->size() == 1);
  REQUIRE(log.times_by_thread().size() == 1);
  CHECK(log.times_by_thread()[0].nodes()[1][0] == doctest::Approx(0.03));
}

}  // namespace melflow::busy_times_test
