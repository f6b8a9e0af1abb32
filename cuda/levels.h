// levels.h - turns squared magnitudes into the values of a row: exponent, bands, logarithm.
//
// Phases of a group of lanes that work on one frame (see fused_phases.h): every lane must have
// finished one phase before the next begins.

#pragma once

#include <cmath>
#include <cstdint>
#include <type_traits>

#include "cuda/band_pieces.h"
#include "cuda/host_device.h"
#include "cuda/mel_tables.h"
#include "cuda/number_types.h"

namespace melflow::cuda {

// The larger and the smaller of the two; NaN if value is NaN.
MELFLOW_HD float at_least(float value, float least) { return value < least ? least : value; }
MELFLOW_HD float at_most(float value, float most) { return value > most ? most : value; }

// Returns the bin's value in the filterbank, from re^2 + im^2.
MELFLOW_HD float bin_value(const Settings& s, float squared_magnitude) {
  float value =
      at_most(at_least(squared_magnitude + s.power_offset, s.power_floor), s.power_ceiling);
  if (s.power == PowerKind::magnitude) value = sqrtf(value);
  if (s.power == PowerKind::other) value = powf(value, s.exponent);
  return value;
}

// Natural logarithm of x >= the smallest normal float, relative error below 1e-6; x itself if it is
// infinite or NaN. x = 2^e (1 + r), r in [sqrt(1/2) - 1, sqrt(2) - 1), and ln(1 + r) = r + r^2 Q(r)
// with the polynomial of lane_vector.h. The device's own __logf bounds only the absolute error, so
// a level near 0 would lose its digits.
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

// Returns the value of a column from a band's or a bin's value: floor and logarithm.
MELFLOW_HD float level(const Settings& s, float value) {
  if (s.floor > 0.0F) value = at_least(value, s.floor);
  if (s.piecewise) {
    constexpr float e = 2.71828183F;
    const float log = natural_log(at_least(value, 1.0F));
    value = !(value > e) ? value / e : log <= e ? log / e : log;
  }
  if (s.log) value = natural_log(at_least(value + s.offset, s.amin)) * s.factor - s.shift;
  return value;
}

// A sum whose error does not grow with the number of terms (Kahan), while they are finite.
struct Sum {
  float value = 0.0F;

  MELFLOW_HD void add(float term) {
    const float corrected = term - excess_;
    const float next = value + corrected;
    excess_ = (next - value) - corrected;
    value = next;
  }

 private:
  float excess_ = 0.0F;  // of value over the exact sum
};

struct PlainSum {
  float value = 0.0F;
  MELFLOW_HD void add(float term) { value += term; }
};

// Floats that are loaded at once.
template <int n>
struct alignas(4 * n) Floats {
  float of[n];
};

// Called once before the first frame: nothing writes the slots of missing pieces.
template <int lanes>
MELFLOW_HD void clear_partials(int lane, const BandCounts& counts, float* partials) {
  for (int i = lane; i < counts.partials(); i += lanes) partials[i] = 0.0F;
}

// Returns the weighted sum of `steps` bins. The loop is unrolled four times: counting would take a
// third of a lane's instructions.
template <int lanes, int unit, class Bins>
MELFLOW_HD float sum_piece(int steps, const Floats<unit>* weights, Bins bins) {
  constexpr int times = 4;
  float sum = 0.0F;
  MELFLOW_KEEP_LOOP
  for (int left = steps;; left -= times * unit) {
    MELFLOW_UNROLL
    for (int k = 0; k < times; ++k) {
      const Floats<unit> weight = weights[k * lanes];
      MELFLOW_UNROLL
      for (int i = 0; i < unit; ++i) sum += weight.of[i] * bins[k * unit + i];
      if (left <= (k + 1) * unit) return sum;
    }
    weights += times * lanes;
    bins += times * unit;
  }
}

// Sums one lane's pieces of bands into partials; bins_from(k)[i] is the value of bin k + i.
template <int lanes, int unit, class BinsFrom>
MELFLOW_HD void sum_pieces(int lane, const BandView& bands, const BinsFrom& bins_from,
                           float* partials) {
  const auto* weights = reinterpret_cast<const Floats<unit>*>(bands.weights) + lane;
  const Piece* const first = bands.pieces + lane;
  int round = 0;
  MELFLOW_KEEP_LOOP
  do {
    const Piece piece = first[round * lanes];
    partials[piece.partial()] =
        sum_piece<lanes>(piece.steps(), weights, bins_from(piece.first_bin));
    weights += piece.steps() / unit * lanes;
  } while (++round < bands.counts.rounds);
}

// Writes one lane's bands of a row, from the partial sums, aligned to 16 bytes. `Total`: Sum if
// they may be more than most_in_a_row.
template <int lanes, class Total>
MELFLOW_HD void write_bands(int lane, const Settings& s, const BandCounts& counts,
                            const float* partials, const Row& row) {
  MELFLOW_KEEP_LOOP
  for (int m = lane; m < counts.n_bands; m += lanes) {
    const auto* of = reinterpret_cast<const Floats<4>*>(partials) + m;
    Total total;
    int quad = 0;
    MELFLOW_KEEP_LOOP
    do {
      const Floats<4> four = of[quad * counts.n_bands];
      MELFLOW_UNROLL
      for (int i = 0; i < 4; ++i) total.add(four.of[i]);
    } while (++quad < counts.quads);
    row.store(m, level(s, total.value));
  }
}

// Writes one lane's bins of a spectrogram's row.
template <int lanes, class Bin>
MELFLOW_HD void write_bins(int lane, const Settings& s, const Bin& bin, const Row& row) {
  for (int k = lane; k < s.n_bins; k += lanes) row.store(k, level(s, bin(k)));
}

}  // namespace melflow::cuda
