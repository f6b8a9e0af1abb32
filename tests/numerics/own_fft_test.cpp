// The transform of a build without FFTW, beside the definition in long double.

#include "stages/features/mel/own_fft.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdint>
#include <cstring>
#include <limits>
#include <numbers>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "stages/features/mel/aligned_array.h"

namespace melflow::own_fft_test {
namespace {

using Exact = std::complex<long double>;

// A tone that fades, on noise of its level.
std::vector<double> samples_of(int n) {
  std::mt19937 random(static_cast<unsigned>(n));
  std::uniform_real_distribution<double> noise(-1.0, 1.0);
  std::vector<double> x;
  for (int i = 0; i < n; ++i)
    x.push_back(std::cos(0.3 * i) * std::exp(-2.0 * i / n) + noise(random));
  return x;
}

template <class Real>
std::vector<std::complex<Real>> bins_of(const OwnFft& fft, const std::vector<double>& samples) {
  AlignedArray<Real> in(samples.size()), out(samples.size() / 2 * 2 + 2);
  AlignedArray<double> work(fft.work_size());
  std::copy(samples.begin(), samples.end(), in.data());
  fft.execute(in.data(), out.data(), work.data());
  std::vector<std::complex<Real>> bins;
  for (std::size_t k = 0; k < out.size(); k += 2)
    bins.emplace_back(out.data()[k], out.data()[k + 1]);
  return bins;
}

// Returns the largest error of the given bins, of the frame's largest.
double error_of(const std::vector<double>& samples, const std::vector<std::complex<double>>& bins,
                const std::vector<std::size_t>& of) {
  const std::size_t n = samples.size();
  std::vector<Exact> roots;
  for (std::size_t i = 0; i < n; ++i) {
    const long double turn = 2 * std::numbers::pi_v<long double> * i / n;
    roots.emplace_back(std::cos(turn), -std::sin(turn));
  }
  double peak = 0;
  for (const std::complex<double>& bin : bins) peak = std::max(peak, std::abs(bin));
  double worst = 0;
  for (const std::size_t k : of) {
    Exact sum = 0;
    std::size_t at = 0;
    for (std::size_t i = 0; i < n; ++i, at = (at + k) % n)
      sum += static_cast<long double>(samples[i]) * roots[at];
    worst = std::max(worst, static_cast<double>(std::abs(sum - Exact(bins[k]))));
  }
  return worst / peak;
}

std::vector<std::size_t> all_bins(int n) {
  std::vector<std::size_t> of(static_cast<std::size_t>(n / 2 + 1));
  for (std::size_t k = 0; k < of.size(); ++k) of[k] = k;
  return of;
}

bool is_prime(int n) {
  for (int d = 2; d * d <= n; ++d)
    if (n % d == 0) return false;
  return true;
}

TEST_CASE("own fft: all lengths up to 300 agree with the definition") {
  double worst = 0;
  for (int n = 2; n <= 300; ++n) {
    CAPTURE(n);
    const std::vector<double> samples = samples_of(n);
    const double error = error_of(samples, bins_of<double>(OwnFft(n), samples), all_bins(n));
    CHECK(error < 1e-15);
    worst = std::max(worst, error);
  }
  MESSAGE("at most " << worst << " of the peak");
}

// Of long ones some bins; that the others are right, too, the sum of all their squares says
// (Parseval).
TEST_CASE("own fft: 200 random odd, prime and long lengths agree with the definition") {
  std::mt19937 random(69);
  const auto from_to = [&random](int from, int to) {
    return from + static_cast<int>(random() % static_cast<unsigned>(to - from + 1));
  };
  std::vector<int> lengths;
  while (lengths.size() < 80) lengths.push_back(from_to(150, 5000) | 1);
  while (lengths.size() < 140)
    if (const int n = from_to(17, 20000); is_prime(n)) lengths.push_back(n);
  while (lengths.size() < 190) lengths.push_back(from_to(16385, 70000));
  for (const int n : {16411, 32768, 44100, 48000, 65536, 65537, 96000, 99991, 131072, 2 * 65537})
    lengths.push_back(n);
  CHECK(lengths.size() == 200);
  double worst = 0, worst_float = 0;
  for (const int n : lengths) {
    CAPTURE(n);
    const std::vector<double> samples = samples_of(n);
    const OwnFft fft(n);
    const auto bins = bins_of<double>(fft, samples);
    const auto last = bins.size() - 1;
    const double error = error_of(samples, bins, {0, 1, last, last / 2, random() % last});
    CHECK(error < 1e-15);
    worst = std::max(worst, error);
    long double of_samples = 0, of_bins = 0;
    for (const double x : samples) of_samples += static_cast<long double>(x) * x;
    for (std::size_t k = 0; k <= last; ++k)
      of_bins += (k == 0 || (k == last && n % 2 == 0) ? 1 : 2) * std::norm(Exact(bins[k]));
    CHECK(std::abs(of_bins / (of_samples * n) - 1) < 1e-15);

    const std::vector<double> rounded = [&] {
      std::vector<float> narrow(samples.begin(), samples.end());
      return std::vector<double>(narrow.begin(), narrow.end());
    }();
    const auto narrow = bins_of<float>(fft, rounded);
    const auto wide = bins_of<double>(fft, rounded);
    double peak = 0, most = 0;
    for (std::size_t k = 0; k <= last; ++k) {
      peak = std::max(peak, std::abs(wide[k]));
      most = std::max(most, std::abs(std::complex<double>(narrow[k]) - wide[k]));
    }
    CHECK(most < 6e-8 * peak);
    worst_float = std::max(worst_float, most / peak);
  }
  MESSAGE("at most " << worst << " of the peak, in float " << worst_float);
}

TEST_CASE("own fft: all instruction sets give the same bytes") {
  const lanes::Available& sets = lanes::available();
  for (const int n : {2,   3,   6,   8,   9,    14,   26,   34,   97,    105,
                      128, 143, 400, 401, 1024, 1103, 2205, 2206, 16411, 20000}) {
    CAPTURE(n);
    const std::vector<double> samples = samples_of(n);
    const auto of = [&](int set) {
      const OwnFft fft(n, *sets.loops[set]);
      return std::pair(bins_of<double>(fft, samples), bins_of<float>(fft, samples));
    };
    const auto same = [](const auto& a, const auto& b) {
      return std::memcmp(a.data(), b.data(), a.size() * sizeof a[0]) == 0;
    };
    const auto widest = of(0);
    for (int i = 1; i < sets.count; ++i) {
      CAPTURE(std::string(sets.loops[i]->instruction_set));
      const auto other = of(i);
      CHECK(same(other.first, widest.first));
      CHECK(same(other.second, widest.second));
    }
  }
}

TEST_CASE("own fft: a NaN spreads to all bins, and silence stays silent") {
  for (const int n : {5, 16, 22, 34, 37, 401, 441, 1103}) {
    CAPTURE(n);
    const OwnFft fft(n);
    std::vector<double> samples(static_cast<std::size_t>(n));
    for (const std::complex<double> bin : bins_of<double>(fft, samples)) CHECK(bin == 0.0);
    samples[static_cast<std::size_t>(n / 3)] = std::numeric_limits<double>::quiet_NaN();
    for (const std::complex<double> bin : bins_of<double>(fft, samples))
      CHECK(std::isnan(std::norm(bin)));
  }
}

}  // namespace
}  // namespace melflow::own_fft_test
