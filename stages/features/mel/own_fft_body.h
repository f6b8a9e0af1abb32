// own_fft_body.h - the steps of OwnFft (own_fft.h); included by lane_loops_*.cpp, under the same
// rules as lane_loops_body.h. The lanes of a vector are neighbouring points of one transform, and
// nothing is fused, so that all instruction sets give the same bytes.
//
// Points are two arrays, real and imaginary parts. Steps read and write whole vectors, also past
// the last point, where arrays have FftTables::padding numbers whose values do not matter.

#pragma once

#include "stages/features/mel/lane_dft.h"
#include "stages/features/mel/lane_loops.h"
#include "stages/features/mel/lane_vector.h"

namespace melflow::lanes {
namespace {

using DoublePoint = PointOf<DoubleLanes>;
constexpr int double_width = DoubleLanes::count;

static_assert(double_width <= FftTables::padding);

struct Halves {
  double *re, *im;
};

MELFLOW_INLINE DoublePoint points_at(const double* re, const double* im, std::int64_t at) {
  return {DoubleLanes::load(re + at), DoubleLanes::load(im + at)};
}
MELFLOW_INLINE void put(DoublePoint point, double* re, double* im) {
  point.re.store(re);
  point.im.store(im);
}

// A step of Stockham's transform, which needs no reordering: with N = parts * radix points in each
// of `run` interleaved transforms, point q of run, p of part, k of radix is at (k * parts + p) *
// run + q of `from`, and at (p * radix + k) * run + q of `to`.
template <int R>
void stockham(const FftPass& t, Halves from, Halves to) {
  const std::int64_t block = static_cast<std::int64_t>(t.parts) * t.run;
  DoublePoint x[R];
  const double* twiddle = t.twiddle;
  if (t.run == 1) {
    for (int p = 0; p < t.parts; p += double_width) {
#pragma GCC unroll 16
      for (int k = 0; k < R; ++k) x[k] = points_at(from.re, from.im, k * block + p);
      dft(x);
      alignas(64) double re[R][double_width], im[R][double_width];
#pragma GCC unroll 16
      for (int k = 0; k < R; ++k) {
        if (k > 0) {
          const double* w = twiddle + 2 * (k - 1) * block + p;
          x[k] = x[k].times(points_at(w, w + block, 0));
        }
        put(x[k], re[k], im[k]);
      }
      const int count = t.parts - p < double_width ? t.parts - p : double_width;
      double* to_re = to.re + static_cast<std::int64_t>(p) * R;
      double* to_im = to.im + static_cast<std::int64_t>(p) * R;
      for (int l = 0; l < count; ++l) {
#pragma GCC unroll 16
        for (int k = 0; k < R; ++k) {
          to_re[l * R + k] = re[k][l];
          to_im[l * R + k] = im[k][l];
        }
      }
    }
    return;
  }
  const int last = (t.run - 1) / double_width * double_width;
  for (int p = 0; p < t.parts; ++p, twiddle += 2 * (R - 1)) {
    // Backwards, since the last vector of a run reaches into the next run.
    for (int q = last; q >= 0; q -= double_width) {
      const std::int64_t at = static_cast<std::int64_t>(p) * t.run + q;
#pragma GCC unroll 16
      for (int k = 0; k < R; ++k) x[k] = points_at(from.re, from.im, k * block + at);
      dft(x);
      const std::int64_t to_at = static_cast<std::int64_t>(p) * R * t.run + q;
#pragma GCC unroll 16
      for (int k = 0; k < R; ++k) {
        if (k > 0) x[k] = x[k].times(twiddle + 2 * (k - 1));
        put(x[k], to.re + to_at + k * t.run, to.im + to_at + k * t.run);
      }
    }
  }
}

// Does all steps, between x and y in turn; the result is in x.
void all_steps(const FftTables& t, Halves& x, Halves& y) {
  for (int i = 0; i < t.n_passes; ++i) {
    const FftPass& pass = t.passes[i];
    switch (pass.radix) {
      case 2:
        stockham<2>(pass, x, y);
        break;
      case 3:
        stockham<3>(pass, x, y);
        break;
      case 4:
        stockham<4>(pass, x, y);
        break;
      case 5:
        stockham<5>(pass, x, y);
        break;
      case 7:
        stockham<7>(pass, x, y);
        break;
      case 8:
        stockham<8>(pass, x, y);
        break;
      case 11:
        stockham<11>(pass, x, y);
        break;
      case 13:
        stockham<13>(pass, x, y);
        break;
    }
    const Halves done = y;
    y = x;
    x = done;
  }
}

void multiply(Halves x, const FftTables::Points& by, int count) {
  for (int i = 0; i < count; i += double_width) {
    put(points_at(x.re, x.im, i).times(points_at(by.re, by.im, i)), x.re + i, x.im + i);
  }
}

// Makes the bins of a real signal from the transform of its sample pairs, as power_of_pair in
// lane_loops_body.h. The arithmetic is in vectors, since GCC 12 fuses what it makes a vector of
// itself, whatever -ffp-contract says.
template <class Real>
void bins_of_pairs(const FftTables& t, Halves x, Real* out) {
  x.re[t.points] = x.re[0];
  x.im[t.points] = x.im[0];
  for (int k = 0; k <= t.points / 2; k += double_width) {
    const int count = t.points / 2 - k < double_width ? t.points / 2 - k + 1 : double_width;
    const int mirror = t.points - k;
    alignas(64) double a[2][double_width] = {}, b[2][double_width];
    for (int l = 0; l < count; ++l) {
      a[0][l] = x.re[mirror - l];
      a[1][l] = x.im[mirror - l];
    }
    const DoublePoint low = points_at(x.re, x.im, k), high = points_at(a[0], a[1], 0);
    const DoublePoint even = {low.re + high.re, low.im - high.im};
    const DoublePoint diff = {low.re - high.re, low.im + high.im};
    const DoublePoint odd = diff.times(points_at(t.turn.re, t.turn.im, k));
    const DoubleLanes half = DoubleLanes::all(0.5);
    const DoublePoint bin = even + odd, mirrored = even - odd;
    put({bin.re * half, bin.im * half}, a[0], a[1]);
    put({mirrored.re * half, mirrored.im * half}, b[0], b[1]);
    for (int l = 0; l < count; ++l) {
      out[2 * (k + l)] = static_cast<Real>(a[0][l]);
      out[2 * (k + l) + 1] = static_cast<Real>(a[1][l]);
      out[2 * (mirror - l)] = static_cast<Real>(b[0][l]);
      out[2 * (mirror - l) + 1] = static_cast<Real>(-b[1][l]);
    }
  }
}

template <class Real>
void own_fft(const FftTables& t, const Real* in, Real* out, double* work) {
  Halves x{work, work + t.length}, y{work + 2 * t.length, work + 3 * t.length};
  const bool is_even = t.n % 2 == 0;
  for (int i = 0; i < t.points; ++i) {
    x.re[i] = is_even ? in[2 * i] : in[i];
    x.im[i] = is_even ? in[2 * i + 1] : 0;
  }
  if (t.is_convolution) {
    multiply(x, t.chirp, t.points);
    for (int i = t.points; i < t.size; ++i) x.re[i] = x.im[i] = 0;
    all_steps(t, x, y);
    multiply(x, t.filter, t.size);
    // The inverse transform is the forward one of exchanged parts.
    x = {x.im, x.re};
    y = {y.im, y.re};
    all_steps(t, x, y);
    x = {x.im, x.re};
    multiply(x, t.chirp, t.outputs);
  } else {
    all_steps(t, x, y);
  }
  if (is_even) return bins_of_pairs(t, x, out);
  for (int k = 0; k < t.outputs; ++k) {
    out[2 * k] = static_cast<Real>(x.re[k]);
    out[2 * k + 1] = static_cast<Real>(x.im[k]);
  }
}

}  // namespace
}  // namespace melflow::lanes
