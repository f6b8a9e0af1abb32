// levels.h - from squared magnitudes to the values of a row: exponent, bands, logarithm.
//
// Phases of a group of lanes that work on one frame (see fused_phases.h): between two of them every
// lane must have finished the one before.

#pragma once

#include <cmath>
#include <cstdint>

#include "cuda/band_pieces.h"
#include "cuda/host_device.h"
#include "cuda/mel_tables.h"
#include "cuda/number_types.h"

namespace melflow::cuda {

// The bin's value in the filterbank, from re^2 + im^2.
MELFLOW_HD float bin_value(const Settings& s, float squared_magnitude) {
  float value = squared_magnitude + s.power_offset;
  if (s.power == PowerKind::magnitude) value = sqrtf(value);
  if (s.power == PowerKind::other) value = powf(value, s.exponent);
  return value;
}

MELFLOW_HD bool has_exponent(const Settings& s) {
  return s.power != PowerKind::square || s.power_offset > 0.0F;
}

// Natural logarithm of x >= the smallest normal float, relative error below 1e-6; x itself when x
// is infinite or NaN. x = 2^e (1 + r), r in [sqrt(1/2) - 1, sqrt(2) - 1), and
// ln(1 + r) = r + r^2 Q(r) with the polynomial of lane_vector.h. The device's own __logf has an
// absolute error only, and a level near 0 would lose its digits.
MELFLOW_HD float natural_log(float x) {
  constexpr std::uint32_t sqrt_half = 0x3f3504f3U;  // bits of sqrt(1/2)
  const std::uint32_t above = bits_of(x) - sqrt_half;
  const float r = float_of((above & 0x007fffffU) + sqrt_half) - 1.0F;
  float q = 0.0873484537F;
  q = q * r - 0.143075228F;
  q = q * r + 0.149179727F;
  q = q * r - 0.165705085F;
  q = q * r + 0.199620724F;
  q = q * r - 0.250017554F;
  q = q * r + 0.333339512F;
  q = q * r - 0.499999911F;
  const auto exponent = static_cast<float>(static_cast<std::int32_t>(above) >> 23);
  const float ln = exponent * 0.693147181F + (r * r * q + r);
  return x <= 3.40282347e38F ? ln : x;
}

// The larger of the two; NaN when value is.
MELFLOW_HD float at_least(float value, float least) { return value < least ? least : value; }

// The value of a column of a row, from a band's or a bin's value: floor and logarithm.
MELFLOW_HD float level(const Settings& s, float value) {
  if (s.floor > 0.0F) value = at_least(value, s.floor);
  if (s.log) value = natural_log(at_least(value + s.offset, s.amin)) * s.factor - s.shift;
  return value;
}

// A sum whose error does not grow with its terms (Kahan), while they are finite.
struct Sum {
  float value = 0.0F;

  MELFLOW_HD void add(float term) {
    const float corrected = term - excess_;
    const float next = value + corrected;
    excess_ = (next - value) - corrected;
    value = next;
  }

 private:
  float excess_ = 0.0F;  // of value over the terms
};

// Bins that are added one after another; lane_loops_body.h has the reason.
constexpr int most_in_a_row = 64;

// One lane's pieces of bands, into partials [rounds * lanes]; bin(k) is the value of a bin. Every
// round has a multiple of `unit` steps.
template <int lanes, int unit, class Bin>
MELFLOW_HD void sum_pieces(int lane, const BandView& bands, const Bin& bin, float* partials) {
  static_assert(most_in_a_row % unit == 0);
#if defined(__CUDA_ARCH__)
#pragma unroll 1
#endif
  for (int round = 0; round < bands.rounds; ++round) {
    const float* weight = bands.weights + bands.weights_at[round] + lane;
    int k = bands.first_bin[round * lanes + lane];
    Sum sum;
    for (int left = bands.steps[round]; left > 0; left -= most_in_a_row) {
      const int end = k + (left < most_in_a_row ? left : most_in_a_row);
      float in_a_row = 0.0F;
#if defined(__CUDA_ARCH__)
#pragma unroll 1
#endif
      for (; k < end; k += unit, weight += unit * lanes) {
        MELFLOW_UNROLL
        for (int i = 0; i < unit; ++i) in_a_row += weight[i * lanes] * bin(k + i);
      }
      sum.add(in_a_row);
    }
    partials[round * lanes + lane] = sum.value;
  }
}

// One lane's bands of a row, from the partials.
template <int lanes>
MELFLOW_HD void write_bands(int lane, const Settings& s, const BandView& bands,
                            const float* partials, const Rows& rows, std::size_t row) {
  const std::size_t at = row * static_cast<std::size_t>(s.columns) + s.levels_at;
  for (int m = lane; m < bands.n_bands; m += lanes) {
    Sum sum;
    const int end = bands.partials_at[m + 1];
#if defined(__CUDA_ARCH__)
#pragma unroll 1
#endif
    for (int i = bands.partials_at[m]; i < end; ++i) sum.add(partials[bands.partials[i]]);
    rows.store(at + m, level(s, sum.value));
  }
}

// One lane's bins of a spectrogram's row.
template <int lanes, class Bin>
MELFLOW_HD void write_bins(int lane, const Settings& s, const Bin& bin, const Rows& rows,
                           std::size_t row) {
  const std::size_t at = row * static_cast<std::size_t>(s.columns) + s.levels_at;
  for (int k = lane; k < s.n_bins; k += lanes) rows.store(at + k, level(s, bin(k)));
}

}  // namespace melflow::cuda
