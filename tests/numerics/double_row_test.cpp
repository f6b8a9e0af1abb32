// precision: double, for values far below the frame's peak, where it matters.

#include "stages/features/mel/double_row.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <random>
#include <vector>

#include "stages/features/mel/mel_kernel.h"
#include "tests/support/reference_mel.h"

namespace melflow::double_row_test {
namespace {

using O = MelOptions;

std::vector<float> rows_of(MelOptions o, O::Precision precision,
                           const std::vector<float>& samples) {
  o.precision = precision;
  const MelKernel kernel(std::make_shared<const MelPlan>(o));
  const auto n = static_cast<std::int64_t>(samples.size());
  std::vector<float> rows(
      static_cast<std::size_t>(kernel.plan().frames(n) * kernel.plan().columns()));
  auto scratch = kernel.make_scratch();
  kernel.frames(SignalView<float>{samples.data(), 0, n, n}, 0, kernel.plan().frames(n), rows.data(),
                scratch);
  return rows;
}

// Mains hum at half of full scale, over noise 120 dB below that.
std::vector<float> hum(int n, int rate) {
  std::mt19937 random(3);
  std::normal_distribution<double> noise(0.0, 5e-7);
  std::vector<float> out;
  for (int i = 0; i < n; ++i) {
    const double t = static_cast<double>(i) / rate;
    out.push_back(
        static_cast<float>(0.5 * std::sin(2 * 3.14159265358979 * 50 * t) + noise(random)));
  }
  return out;
}

TEST_CASE(
    "double row: noise far below a hum is right to the last bit but one, in float it is not") {
  MelOptions o;
  o.sample_rate = 16000;
  o.n_fft = 512;
  o.hop = 160;
  o.window = O::Window::blackman_harris;
  o.log = O::Log::db;
  o.amin = 1e-30;
  o.n_mels = 40;
  const std::vector<float> samples = hum(4000, 16000);
  const reference::Rows expected =
      reference::mel(o, std::vector<double>(samples.begin(), samples.end()));
  const auto worst_of = [&](O::Precision precision) {
    const std::vector<float> rows = rows_of(o, precision, samples);
    REQUIRE(rows.size() == expected.size() * 40);
    double worst = 0, deepest = 0;
    for (std::size_t t = 4; t + 4 < expected.size(); ++t) {  // omits padded frames
      const double peak = *std::max_element(expected[t].begin(), expected[t].end());
      for (std::size_t m = 0; m < 40; ++m) {
        deepest = std::max(deepest, peak - expected[t][m]);
        worst = std::max(worst, std::abs(static_cast<double>(rows[t * 40 + m]) - expected[t][m]));
      }
    }
    CHECK(deepest > 110);
    return worst;
  };
  CHECK(worst_of(O::Precision::float32) > 0.05);
  CHECK(worst_of(O::Precision::float64) < 7.7e-6);  // the spacing of floats from 64 to 128
}

TEST_CASE("double row: dither is the same noise as in float") {
  MelOptions o;
  o.n_fft = 256;
  o.n_mels = 20;
  o.log = O::Log::ln;
  o.dither = 0.01;
  o.dither_seed = 5;
  o.use_energy = true;
  const std::vector<float> samples(3000, 0.0F);
  const std::vector<float> narrow = rows_of(o, O::Precision::float32, samples),
                           wide = rows_of(o, O::Precision::float64, samples);
  REQUIRE(narrow.size() == wide.size());
  double most = 0;
  for (std::size_t i = 0; i < wide.size(); ++i)
    most = std::max(most, static_cast<double>(std::abs(narrow[i] - wide[i])));
  CHECK(most < 1e-4);
  CHECK(most > 0);
  CHECK(*std::min_element(wide.begin(), wide.end()) > std::log(1e-10) + 1);  // noise, not the floor
}

TEST_CASE("double row: a scratch of the other precision is refused") {
  MelOptions o;
  const MelKernel narrow(std::make_shared<const MelPlan>(o));
  o.precision = O::Precision::float64;
  const MelKernel wide(std::make_shared<const MelPlan>(o));
  const std::vector<float> samples(1000, 0.5F);
  const SignalView<float> view{samples.data(), 0, 1000, 1000};
  std::vector<float> row(static_cast<std::size_t>(wide.plan().columns()));
  auto scratch = narrow.make_scratch(), other = wide.make_scratch();
  CHECK_THROWS_AS(wide.frames(view, 0, 1, row.data(), scratch), std::invalid_argument);
  CHECK_THROWS_AS(narrow.frames(view, 0, 1, row.data(), other), std::invalid_argument);
  CHECK_NOTHROW(wide.frames(view, 0, 1, row.data(), other));
}

}  // namespace
}  // namespace melflow::double_row_test
