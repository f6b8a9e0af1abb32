// Dither: noise that depends on the sample, not on the thread or block that computes it.

#include "stages/features/mel/mel_signal.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <memory>
#include <vector>

#include "stages/features/mel/mel_kernel.h"

namespace melflow::mel_signal_test {
namespace {

double noise(std::int64_t seed, std::uint64_t key, std::int64_t index) {
  return Noise(seed, key).at(index);
}

TEST_CASE("dither: noise is normal, and different for every seed, file and sample") {
  constexpr int n = 200'000;
  double sum = 0, squares = 0, fourth = 0, lagged = 0, last = 0;
  int beyond_two = 0;
  Noise all(3, 99);
  for (int i = 0; i < n; ++i) {
    const double x = all.at(i);
    sum += x;
    squares += x * x;
    fourth += x * x * x * x;
    lagged += x * last;
    last = x;
    beyond_two += std::abs(x) > 2 ? 1 : 0;
  }
  // Five standard errors of each value.
  CHECK(std::abs(sum / n) < 5 / std::sqrt(n));
  CHECK(std::abs(squares / n - 1) < 5 * std::sqrt(2.0 / n));
  CHECK(std::abs(fourth / n - 3) < 5 * std::sqrt(96.0 / n));
  CHECK(std::abs(lagged / n) < 5 / std::sqrt(n));
  CHECK(std::abs(beyond_two / static_cast<double>(n) - 0.0455) < 5 * std::sqrt(0.0455 / n));
  Noise in_turn(3, 99);
  for (const std::int64_t i : {7, 6, 7, 8, 100, 9}) CHECK(in_turn.at(i) == noise(3, 99, i));
  CHECK(noise(3, 99, 7) != noise(4, 99, 7));
  CHECK(noise(3, 99, 7) != noise(3, 98, 7));
  CHECK(noise(3, 99, 7) != noise(3, 99, 8));
}

TEST_CASE("dither: overlapping frames and segments share the noise of their samples") {
  MelOptions o;
  o.n_fft = 16;
  o.hop = 4;
  o.n_mels = 3;
  o.center = false;
  o.dither = 1;
  o.dither_seed = 5;
  const MelKernel kernel(std::make_shared<const MelPlan>(o));
  auto scratch = kernel.make_scratch();
  const std::vector<float> silence(100, 0.0F);
  const auto rows = [&](std::int64_t begin, std::uint64_t key) {
    std::vector<float> out(3);
    const SignalView<float> view{silence.data(), 0, 16, 16, key, begin};
    kernel.frames(view, 0, 1, out.data(), scratch);
    return out;
  };
  std::vector<float> file(9);
  kernel.frames(SignalView<float>{silence.data(), 0, 24, 24, 1, 0}, 0, 3, file.data(), scratch);
  for (int t = 0; t < 3; ++t) {
    const std::vector<float> alone = rows(4 * t, 1);
    CHECK(std::equal(alone.begin(), alone.end(), file.begin() + 3 * t));
  }
  CHECK(rows(0, 1) != rows(0, 2));
  CHECK(file[0] > 0);
}

}  // namespace
}  // namespace melflow::mel_signal_test
