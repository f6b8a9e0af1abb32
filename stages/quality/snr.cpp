#include "stages/quality/snr.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "pipeline/base/wide_vectors.h"

namespace melflow {
namespace {

// ln E|z| - E ln|z| of speech in noise, at -20, -19, ... 100 dB; by tests/numerics/wada_table.py.
constexpr double kTable[] = {
    0.409435, 0.409459, 0.409498, 0.409556, 0.409644, 0.409777, 0.409974, 0.410265, 0.410687,
    0.411293, 0.412148, 0.413339, 0.414969, 0.417164, 0.420066, 0.423839, 0.428654, 0.434691,
    0.442128, 0.451128, 0.461837, 0.474368, 0.488795, 0.505151, 0.523423, 0.543551, 0.565434,
    0.588934, 0.613881, 0.640087, 0.667346, 0.695450, 0.724191, 0.753365, 0.782784, 0.812272,
    0.841671, 0.870839, 0.899654, 0.928012, 0.955825, 0.983020, 1.009541, 1.035341, 1.060388,
    1.084657, 1.108135, 1.130813, 1.152691, 1.173772, 1.194065, 1.213581, 1.232336, 1.250346,
    1.267630, 1.284208, 1.300102, 1.315332, 1.329921, 1.343892, 1.357266, 1.370065, 1.382311,
    1.394026, 1.405231, 1.415945, 1.426190, 1.435983, 1.445345, 1.454293, 1.462844, 1.471016,
    1.478825, 1.486286, 1.493414, 1.500225, 1.506731, 1.512947, 1.518885, 1.524557, 1.529975,
    1.535150, 1.540093, 1.544814, 1.549324, 1.553631, 1.557745, 1.561674, 1.565426, 1.569010,
    1.572433, 1.575702, 1.578824, 1.581806, 1.584654, 1.587373, 1.589971, 1.592451, 1.594820,
    1.597083, 1.599243, 1.601306, 1.603277, 1.605159, 1.606956, 1.608673, 1.610312, 1.611877,
    1.613372, 1.614800, 1.616163, 1.617465, 1.618708, 1.619896, 1.621030, 1.622113, 1.623147,
    1.624135, 1.625078, 1.625979, 1.626839,
};
constexpr double kLeastDb = -20;
constexpr std::int64_t kProducts = 8;  // at once
constexpr std::int64_t kFactors = 32;  // magnitudes whose product is a normal number
constexpr float kLeast = 1.0F / (1 << 24);

// Below, pointers: compilers do not vectorise loops whose places are checked.
MELFLOW_FOR_WIDE_VECTORS void add_samples(const float* x, std::int64_t step, std::int64_t count,
                                          float* to) {
  if (step == 1)
    for (std::int64_t i = 0; i < count; ++i) to[i] += x[i];
  else if (step == 2)  // loops that compilers vectorise
    for (std::int64_t i = 0; i < count; ++i) to[i] += x[2 * i];
  else
    for (std::int64_t i = 0; i < count; ++i) to[i] += x[i * step];
}

// Scales them; returns their sum.
MELFLOW_FOR_WIDE_VECTORS float scaled_sum(float* of, std::int64_t count, float scale) {
  for (std::int64_t i = 0; i < count; ++i) of[i] *= scale;
  return lane_sum(count, [of](std::int64_t i) { return of[i]; });
}
MELFLOW_FOR_WIDE_VECTORS float not_zero(const float* of, std::int64_t count) {
  return lane_sum(count, [of](std::int64_t i) { return of[i] != 0 ? 1.0F : 0.0F; });
}

// Makes those that are not 0 their distances from `offset`; returns the sum of these.
MELFLOW_FOR_WIDE_VECTORS float take_magnitudes(float* of, std::int64_t count, float offset) {
  for (std::int64_t i = 0; i < count; ++i) of[i] = of[i] != 0 ? std::abs(of[i] - offset) : 0;
  return lane_sum(count, [of](std::int64_t i) { return of[i]; });
}

// Multiplies every kProducts'th of `count` magnitudes that are not 0, and counts them. Behind them
// all are 0, up to a multiple of kProducts.
MELFLOW_FOR_WIDE_VECTORS void multiply(const float* of, std::int64_t count, double* products,
                                       int* counts) {
  std::fill_n(products, kProducts, 1.0);
  std::fill_n(counts, kProducts, 0);
  for (std::int64_t k = 0; k < count; k += kProducts)
    for (std::int64_t l = 0; l < kProducts; ++l) {
      const float x = of[k + l];
      products[l] *= static_cast<double>(x > 0 ? (x > kLeast ? x : kLeast) : 1.0F);
      counts[l] += x > 0 ? 1 : 0;
    }
}

}  // namespace

// How amplitudes are distributed does not need more than 8,000 a second.
SnrKernel::SnrKernel(int sample_rate) : step_(std::max(1, sample_rate / 8000)) {}

void SnrKernel::push(const Chunk& chunk) {
  std::array<float, Chunk::kFrames> samples{};
  float* mean = samples.data();
  const std::int64_t first = (step_ - chunk.start % step_) % step_;
  const std::int64_t count = (chunk.frames - first + step_ - 1) / step_;
  for (const float* x : chunk.channels) add_samples(x + first, step_, count, mean);
  // The offset by all samples so far, since the formula is of amplitudes around 0.
  all_ += static_cast<double>(
      scaled_sum(mean, count, 1.0F / static_cast<float>(chunk.channels.size())));
  used_ += static_cast<double>(not_zero(mean, count));
  const auto offset = static_cast<float>(used_ > 0 ? all_ / used_ : 0);
  sum_ += take_magnitudes(mean, count, offset);
  // One logarithm of a product in place of many: a magnitude of 0 is left out as a factor of 1.
  for (std::int64_t i = 0; i < count; i += kProducts * kFactors) {
    std::array<double, kProducts> products;
    std::array<int, kProducts> counts;
    multiply(mean + i, std::min(kProducts * kFactors, count - i), products.data(), counts.data());
    for (std::size_t l = 0; l < kProducts; ++l) {
      logs_ += std::log(products[l]);
      count_ += counts[l];
    }
  }
}

void SnrKernel::finish(MeasureValues& out) {
  if (count_ == 0) return;
  const auto count = static_cast<double>(count_);
  const double value = std::log(sum_ / count) - logs_ / count;
  const auto above = std::upper_bound(std::begin(kTable), std::end(kTable), value);
  double place = 0;
  if (above == std::end(kTable))
    place = static_cast<double>(std::size(kTable) - 1);
  else if (above != std::begin(kTable))
    place = static_cast<double>(above - std::begin(kTable) - 1) +
            (value - above[-1]) / (*above - above[-1]);
  out[Measure::snr] = static_cast<float>(kLeastDb + place);
}

}  // namespace melflow
