#include "apps/profile/series.h"

#include <doctest/doctest.h>

#include <chrono>
#include <cmath>
#include <numeric>
#include <thread>

#include "tests/support/printing.h"

namespace melflow::series_test {
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

TEST_CASE("series: what is no point of the graph's run is omitted") {
  Series s = of_two();
  s.add(sample(0, 0), 0, 0, 0);    // no graph runs
  s.add(sample(0.1, 1), 0, 0, 0);  // the graph that loads the audio
  s.add(sample(0.2), 0, 0, 0);
  s.add(sample(0.21), 0, 0, 0);  // too soon
  CHECK(s.seconds == std::vector<double>{0.2});
}

TEST_CASE("series: workers' times are of workers alone, in steps that are as long for all") {
  const auto zero = std::chrono::steady_clock::time_point{} + std::chrono::hours(1);
  VisitLog visits(0, zero);
  const auto add = [&](int node, double from, double to) {
    const auto at = [zero](double s) {
      return zero + std::chrono::duration_cast<std::chrono::steady_clock::duration>(
                        std::chrono::duration<double>(s));
    };
    visits.add({.began = at(from), .ended = at(to), .node = node});
  };
  add(0, 0.05, 0.15);
  std::thread([&] { add(0, 40, 41), add(1, 41, 42); }).join();  // in steps of 0.2 s
  std::thread([&] { add(2, 0, 1); }).join();                    // of a stage with dedicated threads
  RunReport report;
  report.began = zero - std::chrono::seconds(2);
  report.stages.resize(3);
  for (StageReport& s : report.stages) s.on_workers = true;
  report.stages[2].on_workers = false;
  const WorkerTimes times = worker_times(visits, report);
  CHECK(times.from == doctest::Approx(2));
  CHECK(times.step == doctest::Approx(0.2));
  REQUIRE(times.workers.size() == 2);
  const bool is_first = times.workers[0][1].empty();  // the order of threads is undefined
  const auto &a = times.workers[is_first ? 0 : 1], &b = times.workers[is_first ? 1 : 0];
  REQUIRE(a[0].size() == 1);
  CHECK(a[0][0] == doctest::Approx(0.1));
  CHECK(a[2].empty());
  CHECK(std::accumulate(b[0].begin(), b[0].end(), 0.0) == doctest::Approx(1));
  CHECK(std::accumulate(b[1].begin(), b[1].end(), 0.0) == doctest::Approx(1));
  CHECK(b[1][205] == doctest::Approx(0.2));
}

TEST_CASE("series: of many workers and nodes the steps are longer, so that a report stays small") {
  const auto zero = std::chrono::steady_clock::time_point{} + std::chrono::hours(1);
  VisitLog visits(0, zero);
  constexpr int kNodes = 20, kThreads = 20;
  for (int t = 0; t < kThreads; ++t)
    std::thread([&] {
      for (int n = 0; n < kNodes; ++n)
        visits.add({.began = zero, .ended = zero + std::chrono::seconds(29), .node = n});
    }).join();
  RunReport report;
  report.began = zero;
  report.stages.resize(kNodes);
  for (StageReport& s : report.stages) s.on_workers = true;
  const WorkerTimes times = worker_times(visits, report);
  std::size_t figures = 0;
  double sum = 0;
  for (const auto& worker : times.workers)
    for (const auto& node : worker) {
      figures += node.size();
      sum += std::accumulate(node.begin(), node.end(), 0.0);
    }
  CHECK(figures <= kMostFigures);
  CHECK(sum == doctest::Approx(29.0 * kNodes * kThreads));
}

}  // namespace melflow::series_test
