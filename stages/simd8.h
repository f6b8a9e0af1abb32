// simd8.h - eight floats at once, for mel_loops.h: Wide, one 256-bit register, and Pair, two of
// 128 bits (plain x86-64, Arm).
//
// Both offer the same functions, so the loops are written once as templates. The compilers' vector
// extension does the arithmetic; only the order of lanes is spelled out, since compilers make poor
// code of a 256-bit shuffle on a 128-bit machine.
//
// Everything is inlined, so no vector is ever passed by any ABI: compile with -Wno-psabi.

#pragma once

#include <cstdint>
#include <cstring>

#define MELFLOW_INLINE [[gnu::always_inline]] inline

namespace melflow::simd {

constexpr int lanes = 8;

using F4 = float __attribute__((vector_size(16)));
using I4 = std::int32_t __attribute__((vector_size(16)));
using F8 = float __attribute__((vector_size(32)));
using I8 = std::int32_t __attribute__((vector_size(32)));

template <class V>
struct ComplexOf {
  V re;
  V im;
};

// The lanes of a folded vector have values 0 1 4 5 2 3 6 7: the order in which eight interleaved
// complex numbers come apart with the fewest instructions.
constexpr int folded_order[lanes] = {0, 1, 4, 5, 2, 3, 6, 7};

template <class F>
MELFLOW_INLINE F load_native(const float* from) {
  F v;
  std::memcpy(&v, from, sizeof v);
  return v;
}

template <class F>
MELFLOW_INLINE void store_native(float* to, F v) {
  std::memcpy(to, &v, sizeof v);
}

// Natural logarithm of x >= the smallest normal float; x itself when x is infinite or NaN.
// x = 2^e * (1 + r), r in [sqrt(1/2) - 1, sqrt(2) - 1); ln(1 + r) = r + r^2 Q(r), Q of degree 7
// fitted for least relative error of the logarithm (3.5e-8 with the rounded coefficients). With
// the rounding of the arithmetic the relative error is 1.2e-7; the unit test holds it to 1e-6.
template <class F, class I>
MELFLOW_INLINE F ln_native(F x) {
  constexpr std::int32_t sqrt_half = 0x3f3504f3;  // bits of sqrt(1/2)
  constexpr float q[] = {-0.499999911F, 0.333339512F, -0.250017554F, 0.199620724F,
                         -0.165705085F, 0.149179727F, -0.143075228F, 0.0873484537F};
  I bits;
  std::memcpy(&bits, &x, sizeof bits);
  const I above = bits - sqrt_half;
  const I mantissa_bits = (above & 0x007fffff) + sqrt_half;
  F mantissa;
  std::memcpy(&mantissa, &mantissa_bits, sizeof mantissa);
  const F r = mantissa - 1.0F;
  F poly = q[7] * r + q[6];
  for (int i = 5; i >= 0; --i) poly = poly * r + q[i];
  const F ln_mantissa = r * r * poly + r;
  const F ln = __builtin_convertvector(above >> 23, F) * 0.693147181F + ln_mantissa;
  constexpr float largest = 3.40282347e38F;
  return x <= largest ? ln : x;
}

struct Wide {
  F8 v;

  MELFLOW_INLINE static Wide load(const float* from) { return {load_native<F8>(from)}; }
  MELFLOW_INLINE static Wide all(float value) { return {F8{} + value}; }
  MELFLOW_INLINE void store(float* to) const { store_native(to, v); }
  MELFLOW_INLINE Wide operator+(Wide o) const { return {v + o.v}; }
  MELFLOW_INLINE Wide operator-(Wide o) const { return {v - o.v}; }
  MELFLOW_INLINE Wide operator*(Wide o) const { return {v * o.v}; }
  MELFLOW_INLINE Wide ln() const { return {ln_native<F8, I8>(v)}; }
  // The larger of the two, NaN when *this is NaN.
  MELFLOW_INLINE Wide at_least(Wide o) const { return {v < o.v ? o.v : v}; }

  MELFLOW_INLINE static ComplexOf<Wide> load_folded(const float* from) {
    const F8 a = load_native<F8>(from);
    const F8 b = load_native<F8>(from + lanes);
    return {{__builtin_shufflevector(a, b, 0, 2, 8, 10, 4, 6, 12, 14)},
            {__builtin_shufflevector(a, b, 1, 3, 9, 11, 5, 7, 13, 15)}};
  }
  // Value 7 - i wherever load_folded has value i.
  MELFLOW_INLINE static ComplexOf<Wide> load_folded_backwards(const float* from) {
    const F8 a = load_native<F8>(from);
    const F8 b = load_native<F8>(from + lanes);
    const F8 a_swapped = __builtin_shufflevector(a, a, 4, 5, 6, 7, 0, 1, 2, 3);
    const F8 b_swapped = __builtin_shufflevector(b, b, 4, 5, 6, 7, 0, 1, 2, 3);
    return {{__builtin_shufflevector(b_swapped, a_swapped, 2, 0, 10, 8, 6, 4, 14, 12)},
            {__builtin_shufflevector(b_swapped, a_swapped, 3, 1, 11, 9, 7, 5, 15, 13)}};
  }
  MELFLOW_INLINE void store_folded(float* to) const {
    store_native(to, __builtin_shufflevector(v, v, 0, 1, 4, 5, 2, 3, 6, 7));
  }
  MELFLOW_INLINE void store_folded_backwards(float* to) const {
    store_native(to, __builtin_shufflevector(v, v, 7, 6, 3, 2, 5, 4, 1, 0));
  }
  // Sum of the lanes of vectors[i] in lane i.
  MELFLOW_INLINE static Wide horizontal_sums(const Wide* vectors) {
    F8 pairs[4];
    for (int i = 0; i < 4; ++i) pairs[i] = pair_sums(vectors[2 * i].v, vectors[2 * i + 1].v);
    const F8 a = pair_sums(pairs[0], pairs[1]);
    const F8 b = pair_sums(pairs[2], pairs[3]);
    return {__builtin_shufflevector(a, b, 0, 1, 2, 3, 8, 9, 10, 11) +
            __builtin_shufflevector(a, b, 4, 5, 6, 7, 12, 13, 14, 15)};
  }
  MELFLOW_INLINE static F8 pair_sums(F8 a, F8 b) {
    return __builtin_shufflevector(a, b, 0, 2, 8, 10, 4, 6, 12, 14) +
           __builtin_shufflevector(a, b, 1, 3, 9, 11, 5, 7, 13, 15);
  }
};

struct Pair {
  F4 low;
  F4 high;

  MELFLOW_INLINE static Pair load(const float* from) {
    return {load_native<F4>(from), load_native<F4>(from + 4)};
  }
  MELFLOW_INLINE static Pair all(float value) { return {F4{} + value, F4{} + value}; }
  MELFLOW_INLINE void store(float* to) const {
    store_native(to, low);
    store_native(to + 4, high);
  }
  MELFLOW_INLINE Pair operator+(Pair o) const { return {low + o.low, high + o.high}; }
  MELFLOW_INLINE Pair operator-(Pair o) const { return {low - o.low, high - o.high}; }
  MELFLOW_INLINE Pair operator*(Pair o) const { return {low * o.low, high * o.high}; }
  MELFLOW_INLINE Pair ln() const { return {ln_native<F4, I4>(low), ln_native<F4, I4>(high)}; }
  MELFLOW_INLINE Pair at_least(Pair o) const {
    return {low < o.low ? o.low : low, high < o.high ? o.high : high};
  }

  MELFLOW_INLINE static ComplexOf<Pair> load_folded(const float* from) {
    const F4 q[] = {load_native<F4>(from), load_native<F4>(from + 4), load_native<F4>(from + 8),
                    load_native<F4>(from + 12)};
    return {{evens(q[0], q[2]), evens(q[1], q[3])}, {odds(q[0], q[2]), odds(q[1], q[3])}};
  }
  MELFLOW_INLINE static ComplexOf<Pair> load_folded_backwards(const float* from) {
    const ComplexOf<Pair> f = load_folded(from);
    return {{backwards(f.re.high), backwards(f.re.low)},
            {backwards(f.im.high), backwards(f.im.low)}};
  }
  MELFLOW_INLINE void store_folded(float* to) const {
    store_native(to, __builtin_shufflevector(low, high, 0, 1, 4, 5));
    store_native(to + 4, __builtin_shufflevector(low, high, 2, 3, 6, 7));
  }
  MELFLOW_INLINE void store_folded_backwards(float* to) const {
    store_native(to, __builtin_shufflevector(high, low, 3, 2, 7, 6));
    store_native(to + 4, __builtin_shufflevector(high, low, 1, 0, 5, 4));
  }
  MELFLOW_INLINE static Pair horizontal_sums(const Pair* vectors) {
    F4 pairs[4];
    for (int i = 0; i < 4; ++i) {
      const F4 a = vectors[2 * i].low + vectors[2 * i].high;
      const F4 b = vectors[2 * i + 1].low + vectors[2 * i + 1].high;
      pairs[i] = evens(a, b) + odds(a, b);
    }
    return {evens(pairs[0], pairs[1]) + odds(pairs[0], pairs[1]),
            evens(pairs[2], pairs[3]) + odds(pairs[2], pairs[3])};
  }
  MELFLOW_INLINE static F4 evens(F4 a, F4 b) { return __builtin_shufflevector(a, b, 0, 2, 4, 6); }
  MELFLOW_INLINE static F4 odds(F4 a, F4 b) { return __builtin_shufflevector(a, b, 1, 3, 5, 7); }
  MELFLOW_INLINE static F4 backwards(F4 a) { return __builtin_shufflevector(a, a, 3, 2, 1, 0); }
};

}  // namespace melflow::simd

#undef MELFLOW_INLINE
