// lane_loops_body.h - the loops themselves; included by lane_loops_*.cpp, each compiled for another
// instruction set. Nothing here may call a library's inline function unless it is certain to be
// inlined: its copy for the wider set could be linked into the rest of the program.
//
// Compile with -O3 -fno-math-errno -fno-trapping-math -ffp-contract=off: the code states what is
// rounded once and what twice.

#pragma once

#include "stages/features/mel/lane_dft.h"
#include "stages/features/mel/lane_loops.h"
#include "stages/features/mel/lane_vector.h"

namespace melflow::lanes {
namespace {

using Point = PointOf<Lanes>;
constexpr int point = 2 * width;  // [floats]

template <int R, bool is_turned>
MELFLOW_INLINE void butterfly(float* at, int stride, const float* twiddle) {
  Point x[R];
#pragma GCC unroll 16
  for (int q = 0; q < R; ++q) x[q] = Point::load(at + q * stride);
  dft(x);
#pragma GCC unroll 16
  for (int q = 0; q < R; ++q) {
    if (is_turned && q > 0) x[q] = x[q].times(twiddle + 2 * (q - 1));
    x[q].store(at + q * stride);
  }
}

template <int R>
void decimate(const Pass& pass, float* block) {
  const int part = pass.size / R;
  const int stride = part * point;
  butterfly<R, false>(block, stride, nullptr);
  const float* twiddle = pass.twiddle;
  for (int j = 1; j < part; ++j) {
    twiddle += 2 * (R - 1);
    butterfly<R, true>(block + j * point, stride, twiddle);
  }
}

// Does all steps but the last, block after block, so that a large transform stays in cache.
void decimate_from(const RunTables& t, int first, float* block) {
  if (first == t.n_passes) return;
  const Pass& pass = t.passes[first];
  switch (pass.radix) {
    case 2:
      decimate<2>(pass, block);
      break;
    case 3:
      decimate<3>(pass, block);
      break;
    case 4:
      decimate<4>(pass, block);
      break;
    case 5:
      decimate<5>(pass, block);
      break;
    case 7:
      decimate<7>(pass, block);
      break;
    case 8:
      decimate<8>(pass, block);
      break;
    case 11:
      decimate<11>(pass, block);
      break;
    case 13:
      decimate<13>(pass, block);
      break;
  }
  if (first + 1 == t.n_passes) return;
  const int part = pass.size / pass.radix;
  for (int q = 0; q < pass.radix; ++q) decimate_from(t, first + 1, block + q * part * point);
}

// Writes squared magnitudes of a real signal's bins k and points - k, from the transform Z of its
// even (re) and odd (im) samples. With E, O the transforms of the two, X[k] = E[k] + exp(-2 pi i k
// / n) O[k], and X[n/2 - k] is the conjugate of E[k] - exp(...) O[k]. The usual factors 1/2 of E
// and O are in the window. Z[points] stands for Z[0].
MELFLOW_INLINE void power_of_pair(Point low, Point high, const float* turn, float* power,
                                  float* mirrored) {
  const Point even = {low.re + high.re, low.im - high.im};
  const Point diff = {low.re - high.re, low.im + high.im};
  const Point odd = diff.times(turn);
  const Point a = even + odd, b = even - odd;
  mul_add(a.re, a.re, a.im * a.im).store(power);
  mul_add(b.re, b.re, b.im * b.im).store(mirrored);
}

// Does the last step and computes the power. Block k0 yields bins k0 + q * blocks; their mirror
// images are the bins of block `blocks - k0`, in reverse.
template <int R>
void last_step(const RunTables& t, const float* points, float* power) {
  const int blocks = t.points / R;
  const std::int32_t* const block_at = t.block_at;
  const float* turn = t.turn;
  const int stride = blocks * width;
  float* mirror = power + R * stride;
  const auto transformed = [&](int k0, Point(&x)[R]) __attribute__((always_inline)) {
    const float* at = points + static_cast<std::int64_t>(block_at[k0]) * point;
#pragma GCC unroll 16
    for (int q = 0; q < R; ++q) x[q] = Point::load(at + q * point);
    dft(x);
  };
  const auto write = [&](int q, Point low, Point high) __attribute__((always_inline)) {
    power_of_pair(low, high, turn + 2 * q, power + q * stride, mirror - q * stride);
  };
  const auto next = [&]() __attribute__((always_inline)) {
    turn += 2 * R;
    power += width;
    mirror -= width;
  };
  Point x[R];
  transformed(0, x);
  for (int q = 0; q <= R / 2; ++q) write(q, x[q], x[(R - q) % R]);
  next();
  int k0 = 1;
  for (; k0 < blocks - k0; ++k0) {
    Point mirrored[R];
    transformed(k0, x);
    transformed(blocks - k0, mirrored);
#pragma GCC unroll 16
    for (int q = 0; q < R; ++q) write(q, x[q], mirrored[R - 1 - q]);
    next();
  }
  if (blocks % 2 == 0) {
    transformed(k0, x);
    for (int q = 0; q < (R + 1) / 2; ++q) write(q, x[q], x[R - 1 - q]);
  }
}

void transform(const RunTables& t, float* points, float* power) {
  decimate_from(t, 0, points);
  switch (t.last_radix) {
    case 2:
      last_step<2>(t, points, power);
      break;
    case 3:
      last_step<3>(t, points, power);
      break;
    case 4:
      last_step<4>(t, points, power);
      break;
    case 5:
      last_step<5>(t, points, power);
      break;
    case 7:
      last_step<7>(t, points, power);
      break;
    case 8:
      last_step<8>(t, points, power);
      break;
    case 11:
      last_step<11>(t, points, power);
      break;
    case 13:
      last_step<13>(t, points, power);
      break;
  }
}

// Loads eight samples of every frame at once: four points, each a pair of samples.
MELFLOW_INLINE void load_samples(const std::int16_t* const* frames, int at, const float* window,
                                 float* points) {
  const void* from[width];
#pragma GCC unroll 16
  for (int l = 0; l < width; ++l) from[l] = frames[l] + at;
  Lanes pairs[4];
  load_quads(from, pairs);
  transpose_quads(pairs);
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i, points += point) {
    const Ints both = std::bit_cast<Ints>(pairs[i].v);
    const Lanes re{__builtin_convertvector(low_halves(both), Floats)};
    const Lanes im{__builtin_convertvector(both >> 16, Floats)};
    (re * Lanes::all(window[2 * i])).store(points);
    (im * Lanes::all(window[2 * i + 1])).store(points + width);
  }
}

MELFLOW_INLINE void load_samples(const float* const* frames, int at, const float* window,
                                 float* points) {
#pragma GCC unroll 2
  for (int half = 0; half < 2; ++half) {
    const void* from[width];
#pragma GCC unroll 16
    for (int l = 0; l < width; ++l) from[l] = frames[l] + at + 4 * half;
    Lanes values[4];
    load_quads(from, values);
    transpose_quads(values);
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i, points += width)
      (values[i] * Lanes::all(window[4 * half + i])).store(points);
  }
}

template <class Sample>
MELFLOW_INLINE void load_frames(const RunTables& t, const Sample* const* frames,
                                const float* window, float* points) {
  const int whole = t.frame_length / 8 * 8;
  for (int i = 0; i < whole; i += 8) load_samples(frames, i, window + i, points + i * width);
  int filled = whole;
  if (whole < t.frame_length) {
    // Reads no sample after a frame: there may be none.
    Sample last[width][8] = {};
    float last_window[8] = {};
    const Sample* from[width];
    const auto rest = static_cast<std::size_t>(t.frame_length - whole);
    for (int l = 0; l < width; ++l) {
      std::memcpy(last[l], frames[l] + whole, rest * sizeof(Sample));
      from[l] = last[l];
    }
    std::memcpy(last_window, window + whole, rest * sizeof(float));
    alignas(64) float ends[8 * width];
    load_samples(from, 0, last_window, ends);
    const int left = 2 * t.points - whole < 8 ? 2 * t.points - whole : 8;
    std::memcpy(points + whole * width, ends,
                static_cast<std::size_t>(left * width) * sizeof(float));
    filled += left;
  }
  for (int i = filled; i < 2 * t.points; ++i) Lanes::all(0.0F).store(points + i * width);
}

// with_steps: values have a floor or a piecewise logarithm.
template <bool with_steps>
MELFLOW_INLINE void level(const RunTables& t, Lanes (&values)[4]) {
  if constexpr (with_steps) {
    constexpr float e = 2.71828183F;
    for (Lanes& value : values) {
      if (t.floor > 0.0F) value = value.at_least(Lanes::all(t.floor));
      if (!t.piecewise) continue;
      const Lanes ln = value.at_least(Lanes::all(1.0F)).ln();
      const Floats log = ln.v <= e ? ln.v / e : ln.v;
      value.v = value.v > e ? log : value.v / e;
    }
  }
  if (!t.log) return;
#pragma GCC unroll 4
  for (Lanes& value : values) {
    value = (value + Lanes::all(t.offset)).at_least(Lanes::all(t.amin));
    value = mul_sub(value.ln(), Lanes::all(t.factor), Lanes::all(t.shift));
  }
}

// Stores columns [at, at + 4) of all rows, or up to `count`.
MELFLOW_INLINE void store_columns(Lanes (&values)[4], int at, int count, float* const* rows) {
  transpose_quads(values);
  if (at + 4 <= count) {
    store_quads(values, rows, at);
    return;
  }
  float last[width][4];
  float* to[width];
  for (int l = 0; l < width; ++l) to[l] = last[l];
  store_quads(values, to, 0);
  for (int l = 0; l < width; ++l)
    std::memcpy(rows[l] + at, last[l], static_cast<std::size_t>(count - at) * sizeof(float));
}

// Bins added one after another. If all are equal, as in a click, the rounding errors have one sign,
// and the error grows by 1e-8 of the sum with each bin (measured).
constexpr int most_in_a_row = 64;

// Adds n bins to a sum.
MELFLOW_INLINE Lanes weighted_sum(Lanes sum, const float* weight, const float* bins, int n) {
#pragma GCC unroll 4
  for (int b = 0; b < n; ++b)
    sum = mul_add(Lanes::all(weight[b]), Lanes::load(bins + b * width), sum);
  return sum;
}

// Sums any number of bins by halves, down to most_in_a_row.
[[gnu::noinline]] Lanes wide_sum(const float* weight, const float* bins, int n) {
  if (n <= most_in_a_row) return weighted_sum(Lanes::all(0.0F), weight, bins, n);
  const int half = n / 2;
  return wide_sum(weight, bins, half) + wide_sum(weight + half, bins + half * width, n - half);
}

// Sums four bands, side by side as far as all of them reach: an addition waits for the one before.
MELFLOW_INLINE void band_sums(const RunTables& t, int band, const float*& weight,
                              const float* power, Lanes (&sums)[4]) {
  const float* weights[4];
  const float* bins[4];
  int counts[4];
  int common = most_in_a_row;
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    const bool exists = band + i < t.n_mels;
    counts[i] = exists ? t.n_weights[band + i] : 0;
    bins[i] = exists ? power + t.first_bin[band + i] * width : power;
    weights[i] = weight;
    weight += counts[i];
    const bool is_wide = counts[i] > most_in_a_row;
    sums[i] = is_wide ? wide_sum(weights[i], bins[i], counts[i]) : Lanes::all(0.0F);
    if (is_wide) counts[i] = 0;
    common = counts[i] < common ? counts[i] : common;
  }
  for (int b = 0; b < common; ++b) {
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i)
      sums[i] = mul_add(Lanes::all(weights[i][b]), Lanes::load(bins[i] + b * width), sums[i]);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i)
    sums[i] =
        weighted_sum(sums[i], weights[i] + common, bins[i] + common * width, counts[i] - common);
}

// Applies the limits of bins and, with is_root, the power 1.
template <bool is_root>
[[gnu::noinline]] void limit_bins(const RunTables& t, float* power) {
  const Lanes offset = Lanes::all(t.power_offset);
  const Lanes floor = Lanes::all(t.power_floor), ceiling = Lanes::all(t.power_ceiling);
  const float* const end = power + t.n_bins * width;
#pragma GCC unroll 4
  for (; power != end; power += width) {
    const Lanes p = (Lanes::load(power) + offset).at_least(floor).at_most(ceiling);
    (is_root ? p.sqrt() : p).store(power);
  }
}

// Two functions, so that the usual one keeps its values in registers.
template <bool with_steps>
[[gnu::noinline]] void levels(const RunTables& t, const float* power, float* const* out) {
  if (t.n_mels == 0) {
    for (int k = 0; k < t.n_bins; k += 4) {
      Lanes values[4];
#pragma GCC unroll 4
      for (int i = 0; i < 4; ++i)
        values[i] = k + i < t.n_bins ? Lanes::load(power + (k + i) * width) : Lanes::all(0.0F);
      level<with_steps>(t, values);
      store_columns(values, k, t.n_bins, out);
    }
    return;
  }
  const float* weight = t.weights;
  for (int m = 0; m < t.n_mels; m += 4) {
    Lanes sums[4];
    band_sums(t, m, weight, power, sums);
    level<with_steps>(t, sums);
    store_columns(sums, m, t.n_mels, out);
  }
}

void rows(const RunTables& t, float* power, float* const* out) {
  const bool is_root = t.power == 1.0;
  if (t.is_limited) is_root ? limit_bins<true>(t, power) : limit_bins<false>(t, power);
  const float offset = t.is_limited ? 0.0F : t.power_offset;
  const bool is_rooted = t.power == 2.0 || (t.is_limited && is_root);
  if (offset > 0.0F || !is_rooted) {
    const auto exponent = static_cast<float>(t.power / 2.0);
    for (int k = 0; k < t.n_bins; ++k) {
      Lanes p = Lanes::load(power + k * width);
      if (offset > 0.0F) p = p + Lanes::all(offset);
      if (is_root) {
        p = p.sqrt();
      } else if (t.power != 2.0) {
        for (int l = 0; l < width; ++l) p.v[l] = powf(p.v[l], exponent);
      }
      p.store(power + k * width);
    }
  }
  if (t.has_steps)
    levels<true>(t, power, out);
  else
    levels<false>(t, power, out);
}

void load_int16(const RunTables& t, const std::int16_t* const* frames, const float* window,
                float* points) {
  load_frames(t, frames, window, points);
}
void load_float(const RunTables& t, const float* const* frames, const float* window,
                float* points) {
  load_frames(t, frames, window, points);
}

}  // namespace
}  // namespace melflow::lanes
