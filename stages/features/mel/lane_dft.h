// lane_dft.h - complex points, each lane in its own transform, and transforms of a few points; for
// lane_loops_body.h and own_fft_body.h, under the same rules.

#pragma once

#include "stages/features/mel/lane_vector.h"

namespace melflow::lanes {
namespace {

// V: Lanes or DoubleLanes
template <class V>
struct PointOf {
  V re, im;

  MELFLOW_INLINE static PointOf load(const typename V::Number* from) {
    return {V::load(from), V::load(from + V::count)};
  }
  MELFLOW_INLINE void store(typename V::Number* to) const {
    re.store(to);
    im.store(to + V::count);
  }
  MELFLOW_INLINE PointOf operator+(PointOf o) const { return {re + o.re, im + o.im}; }
  MELFLOW_INLINE PointOf operator-(PointOf o) const { return {re - o.re, im - o.im}; }
  MELFLOW_INLINE PointOf times(PointOf w) const {
    return {mul_sub(re, w.re, im * w.im), mul_add(re, w.im, im * w.re)};
  }
  MELFLOW_INLINE PointOf times(const typename V::Number* w) const {
    return times({V::all(w[0]), V::all(w[1])});
  }
};

// a - i b and a + i b.
template <class V>
MELFLOW_INLINE PointOf<V> minus_i(PointOf<V> a, PointOf<V> b) {
  return {a.re + b.im, a.im - b.re};
}
template <class V>
MELFLOW_INLINE PointOf<V> plus_i(PointOf<V> a, PointOf<V> b) {
  return {a.re - b.im, a.im + b.re};
}

// [R][q], cos(2 pi q / R) and sin(2 pi q / R) for q up to (R - 1) / 2, for odd R only.
constexpr double cos_of[14][7] = {
    {},
    {},
    {},
    {1.0, -0.5},
    {},
    {1.0, 0.30901699437494745, -0.80901699437494745},
    {},
    {1.0, 0.62348980185873348, -0.22252093395631439, -0.90096886790241915},
    {},
    {},
    {},
    {1.0, 0.84125353283118121, 0.41541501300188644, -0.14231483827328514, -0.6548607339452851,
     -0.95949297361449737},
    {},
    {1.0, 0.88545602565320991, 0.56806474673115581, 0.12053668025532305, -0.35460488704253562,
     -0.74851074817110108, -0.97094181742605201}};
constexpr double sin_of[14][7] = {
    {},
    {},
    {},
    {0.0, 0.8660254037844386},
    {},
    {0.0, 0.95105651629515353, 0.58778525229247314},
    {},
    {0.0, 0.7818314824680298, 0.97492791218182362, 0.43388373911755812},
    {},
    {},
    {},
    {0.0, 0.54064081745559756, 0.90963199535451833, 0.98982144188093268, 0.75574957435425827,
     0.28173255684142967},
    {},
    {0.0, 0.46472317204376856, 0.82298386589365635, 0.99270887409805397, 0.93501624268541483,
     0.66312265824079519, 0.23931566428755777}};

// Transforms R points in place. For odd R, with s_q and d_q the sum and the difference of x_q and
// x_{R-q}, outputs k and R-k are x_0 + sum of cos(2 pi k q / R) s_q -/+ i sin(...) d_q.
template <class V, int R>
MELFLOW_INLINE void dft(PointOf<V> (&x)[R]) {
  using Point = PointOf<V>;
  constexpr int half = (R - 1) / 2;
  Point s[half + 1], d[half + 1];
  Point first = x[0];
  for (int q = 1; q <= half; ++q) {
    s[q] = x[q] + x[R - q];
    d[q] = x[q] - x[R - q];
    first = first + s[q];
  }
  Point out[R];
  out[0] = first;
#pragma GCC unroll 8
  for (int k = 1; k <= half; ++k) {
    Point a = x[0];
    Point b = {V::all(0), V::all(0)};
#pragma GCC unroll 8
    for (int q = 1; q <= half; ++q) {
      const int turn = k * q % R;
      const int folded = turn <= half ? turn : R - turn;
      const V c = V::all(static_cast<typename V::Number>(cos_of[R][folded]));
      const V w = V::all(
          static_cast<typename V::Number>(turn <= half ? sin_of[R][folded] : -sin_of[R][folded]));
      a = {mul_add(c, s[q].re, a.re), mul_add(c, s[q].im, a.im)};
      b = q == 1 ? Point{w * d[q].re, w * d[q].im}
                 : Point{mul_add(w, d[q].re, b.re), mul_add(w, d[q].im, b.im)};
    }
    out[k] = minus_i(a, b);
    out[R - k] = plus_i(a, b);
  }
  for (int k = 0; k < R; ++k) x[k] = out[k];
}

template <class V>
MELFLOW_INLINE void dft(PointOf<V> (&x)[2]) {
  const PointOf<V> a = x[0];
  x[0] = a + x[1];
  x[1] = a - x[1];
}

template <class V>
MELFLOW_INLINE void dft(PointOf<V> (&x)[4]) {
  const PointOf<V> a = x[0] + x[2], b = x[0] - x[2];
  const PointOf<V> c = x[1] + x[3], d = x[1] - x[3];
  x[0] = a + c;
  x[2] = a - c;
  x[1] = minus_i(b, d);
  x[3] = plus_i(b, d);
}

template <class V>
MELFLOW_INLINE void dft(PointOf<V> (&x)[8]) {
  PointOf<V> even[4] = {x[0], x[2], x[4], x[6]};
  PointOf<V> odd[4] = {x[1], x[3], x[5], x[7]};
  dft(even);
  dft(odd);
  const V r = V::all(static_cast<typename V::Number>(0.70710678118654752));
  // (1 - i) / sqrt(2) and (-1 - i) / sqrt(2)
  const PointOf<V> one = {(odd[1].re + odd[1].im) * r, (odd[1].im - odd[1].re) * r};
  const PointOf<V> three = {(odd[3].im - odd[3].re) * r, (odd[3].re + odd[3].im) * r};
  x[0] = even[0] + odd[0];
  x[4] = even[0] - odd[0];
  x[1] = even[1] + one;
  x[5] = even[1] - one;
  x[2] = minus_i(even[2], odd[2]);
  x[6] = plus_i(even[2], odd[2]);
  x[3] = {even[3].re + three.re, even[3].im - three.im};
  x[7] = {even[3].re - three.re, even[3].im + three.im};
}

}  // namespace
}  // namespace melflow::lanes
