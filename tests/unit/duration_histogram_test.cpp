// Compares percentiles of a histogram with those of the sorted values.
#include "pipeline/base/duration_histogram.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

namespace melflow::duration_histogram_test {
namespace {

// Returns the percentile by nearest rank [s].
double sorted_percentile(std::vector<std::int64_t> values, double share) {
  std::sort(values.begin(), values.end());
  const auto rank = static_cast<std::size_t>(std::ceil(share * static_cast<double>(values.size())));
  return static_cast<double>(values[std::max<std::size_t>(rank, 1) - 1]) * 1e-9;
}

}  // namespace

TEST_CASE("duration histogram: a percentile is at most 1/32 off, over the whole range") {
  std::mt19937_64 random(7);
  std::uniform_real_distribution<double> power(0, 43.9);  // 1 ns to 4.6 hours
  std::vector<std::int64_t> values;
  DurationHistogram times;
  for (int i = 0; i < 20000; ++i) {
    values.push_back(static_cast<std::int64_t>(std::exp2(power(random))));
    times.add(values.back());
  }
  CHECK(times.count() == values.size());
  for (const double share : {0.0, 0.01, 0.1, 0.5, 0.9, 0.99, 0.999, 1.0}) {
    CAPTURE(share);
    const double expected = sorted_percentile(values, share);
    CHECK(std::abs(times.percentile(share) - expected) <= expected / 32);
  }
  CHECK(times.greatest() == sorted_percentile(values, 1));
}

TEST_CASE("duration histogram: below 16 ns a percentile is exact") {
  for (std::int64_t n = 0; n < 16; ++n) {
    DurationHistogram times;
    times.add(n);
    CHECK(times.percentile(0.5) == doctest::Approx(static_cast<double>(n) * 1e-9));
  }
}

TEST_CASE(
    "duration histogram: what never took any time, went back in time or took days is counted") {
  DurationHistogram times;
  CHECK(times.percentile(0.5) == 0);
  CHECK(times.greatest() == 0);
  times.add(100, 0);
  CHECK(times.count() == 0);
  times.add(-5);
  CHECK(times.percentile(1) == 0);
  const std::int64_t days = std::int64_t{3} * 86'400 * 1'000'000'000;
  times.add(days);
  CHECK(times.greatest() == doctest::Approx(3 * 86'400));
  CHECK(times.percentile(1) > 4 * 3600);  // the last bucket
  CHECK(times.percentile(1) <= times.greatest());
}

TEST_CASE("duration histogram: items that went together count as many") {
  DurationHistogram times;
  times.add(1000, 9);
  times.add(1'000'000, 1);
  CHECK(times.count() == 10);
  CHECK(times.percentile(0.9) == doctest::Approx(1e-6).epsilon(0.032));
  CHECK(times.percentile(0.91) == doctest::Approx(1e-3).epsilon(0.032));
}

TEST_CASE("duration histogram: the sum of two is that of all their durations") {
  DurationHistogram first, second, all;
  for (std::int64_t n = 1; n < 100; ++n) {
    (n % 3 == 0 ? first : second).add(n * n * 1000, 2);
    all.add(n * n * 1000, 2);
  }
  first += second;
  CHECK(first.count() == all.count());
  CHECK(first.greatest() == all.greatest());
  for (const double share : {0.1, 0.5, 0.9})
    CHECK(first.percentile(share) == all.percentile(share));
}

}  // namespace melflow::duration_histogram_test
