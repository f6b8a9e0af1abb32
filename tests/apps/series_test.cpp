#include "apps/profile/series.h"

#include <doctest/doctest.h>

#include <cmath>

#include "tests/support/printing.h"

using namespace melflow;

namespace {

RunSample sample(double seconds, std::size_t nodes = 2) {
  RunSample s;
  s.seconds = seconds;
  s.files = static_cast<std::size_t>(std::lround(seconds * 10));
  s.rows = 3 * s.files;
  s.reserved = 7;
  for (std::size_t n = 0; n < nodes; ++n)
    s.nodes.push_back({n, {.busy = seconds * static_cast<double>(n)}});
  return s;
}

Series of_two() {
  Series s;
  s.nodes = {{"a", {}, {}}, {"b", {}, {}}};
  return s;
}

}  // namespace

TEST_CASE("series: keeps every point of a short run, in the same places of all lists") {
  Series s = of_two();
  for (int i = 0; i < 20; ++i)
    s.add(sample(0.1 * i), 100 + static_cast<std::size_t>(i), 2.0 * i, i);
  REQUIRE(s.size() == 20);
  CHECK(s.step == 0.1);
  for (std::size_t i = 0; i < s.size(); ++i) {
    CHECK(s.seconds[i] == 0.1 * static_cast<double>(i));
    CHECK(s.files[i] == i);
    CHECK(s.rows[i] == 3 * i);
    CHECK(s.resident[i] == 100 + i);
    CHECK(s.cpu_seconds[i] == 2.0 * static_cast<double>(i));
    CHECK(s.disk_read_bytes[i] == static_cast<std::int64_t>(i));
    CHECK(s.nodes[1].waiting[i] == 1);
    CHECK(s.nodes[1].time[i].busy == s.seconds[i]);
  }
}

TEST_CASE("series: a long run has longer steps, and never more points than there is room for") {
  Series s = of_two();
  for (int i = 0; i < 100'000; ++i) {
    s.add(sample(0.1 * i), 0, 0, 0);
    REQUIRE(s.size() <= Series::kMost);
  }
  CHECK(s.step == doctest::Approx(51.2));
  CHECK(s.size() > Series::kMost / 3);
  for (std::size_t i = 1; i < s.size(); ++i)
    CHECK(s.seconds[i] - s.seconds[i - 1] == doctest::Approx(s.step).epsilon(0.11));
  CHECK(s.seconds.front() == 0);
  CHECK(s.seconds.back() > 10'000 - 2 * s.step);
  CHECK(s.nodes[0].waiting.size() == s.size());
  CHECK(s.nodes[1].time.back().busy == s.seconds.back());
}

TEST_CASE("series: what is no point of the graph's run is left out") {
  Series s = of_two();
  s.add(sample(0, 0), 0, 0, 0);    // no graph runs
  s.add(sample(0.1, 1), 0, 0, 0);  // that of a filling pass
  s.add(sample(0.2), 0, 0, 0);
  s.add(sample(0.21), 0, 0, 0);  // too soon
  CHECK(s.seconds == std::vector<double>{0.2});
}
