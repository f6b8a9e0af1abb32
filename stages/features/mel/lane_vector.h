// lane_vector.h - the vectors of lane_loops_body.h: Lanes has `width` floats, one per frame.
//
// Every file that includes it is compiled for one instruction set and uses that set's widest
// vector. All code is in an unnamed namespace and inlined, so that code for one processor never
// replaces the same function for another.
//
// mul_add and similar functions round once if the instruction set can, so AVX2 and AVX-512 yield
// the same bytes; the baseline of x86-64 rounds twice.

#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

#define MELFLOW_INLINE [[gnu::always_inline]] inline

static_assert(std::endian::native == std::endian::little,
              "pairs of int16 are taken apart by place");

namespace melflow::lanes {
namespace {

#if defined(__AVX512F__)
constexpr int width = 16;
#elif defined(__AVX2__)
constexpr int width = 8;
#else
constexpr int width = 4;
#endif

using Floats = float __attribute__((vector_size(4 * width)));
using Ints = std::int32_t __attribute__((vector_size(4 * width)));

// zip_*: interleave the elements of two vectors within each 128 bits.
// low_halves: the lower int16 of each pair; x86 has one instruction for low * 1 + high * 0.
#if defined(__AVX512F__)
MELFLOW_INLINE Floats zip_low(Floats a, Floats b) { return _mm512_unpacklo_ps(a, b); }
MELFLOW_INLINE Floats zip_high(Floats a, Floats b) { return _mm512_unpackhi_ps(a, b); }
MELFLOW_INLINE Floats zip_low_pairs(Floats a, Floats b) {
  return Floats(_mm512_unpacklo_pd(__m512d(a), __m512d(b)));
}
MELFLOW_INLINE Floats zip_high_pairs(Floats a, Floats b) {
  return Floats(_mm512_unpackhi_pd(__m512d(a), __m512d(b)));
}
MELFLOW_INLINE Floats fused(Floats a, Floats b, Floats c) { return _mm512_fmadd_ps(a, b, c); }
MELFLOW_INLINE Floats fused_sub(Floats a, Floats b, Floats c) { return _mm512_fmsub_ps(a, b, c); }
MELFLOW_INLINE Floats square_root(Floats a) { return _mm512_sqrt_ps(a); }
MELFLOW_INLINE Floats broadcast(float a) { return _mm512_set1_ps(a); }
MELFLOW_INLINE Ints low_halves(Ints a) {
  return Ints(_mm512_madd_epi16(__m512i(a), _mm512_set1_epi32(1)));
}
#elif defined(__AVX2__)
MELFLOW_INLINE Floats zip_low(Floats a, Floats b) { return _mm256_unpacklo_ps(a, b); }
MELFLOW_INLINE Floats zip_high(Floats a, Floats b) { return _mm256_unpackhi_ps(a, b); }
MELFLOW_INLINE Floats zip_low_pairs(Floats a, Floats b) {
  return Floats(_mm256_unpacklo_pd(__m256d(a), __m256d(b)));
}
MELFLOW_INLINE Floats zip_high_pairs(Floats a, Floats b) {
  return Floats(_mm256_unpackhi_pd(__m256d(a), __m256d(b)));
}
MELFLOW_INLINE Floats fused(Floats a, Floats b, Floats c) { return _mm256_fmadd_ps(a, b, c); }
MELFLOW_INLINE Floats fused_sub(Floats a, Floats b, Floats c) { return _mm256_fmsub_ps(a, b, c); }
MELFLOW_INLINE Floats square_root(Floats a) { return _mm256_sqrt_ps(a); }
MELFLOW_INLINE Floats broadcast(float a) { return _mm256_set1_ps(a); }
MELFLOW_INLINE Ints low_halves(Ints a) {
  return Ints(_mm256_madd_epi16(__m256i(a), _mm256_set1_epi32(1)));
}
#else
MELFLOW_INLINE Floats zip_low(Floats a, Floats b) {
  return __builtin_shufflevector(a, b, 0, 4, 1, 5);
}
MELFLOW_INLINE Floats zip_high(Floats a, Floats b) {
  return __builtin_shufflevector(a, b, 2, 6, 3, 7);
}
MELFLOW_INLINE Floats zip_low_pairs(Floats a, Floats b) {
  return __builtin_shufflevector(a, b, 0, 1, 4, 5);
}
MELFLOW_INLINE Floats zip_high_pairs(Floats a, Floats b) {
  return __builtin_shufflevector(a, b, 2, 3, 6, 7);
}
#if defined(__aarch64__)
MELFLOW_INLINE Floats fused(Floats a, Floats b, Floats c) { return vfmaq_f32(c, a, b); }
MELFLOW_INLINE Floats fused_sub(Floats a, Floats b, Floats c) { return vfmaq_f32(-c, a, b); }
#else
MELFLOW_INLINE Floats fused(Floats a, Floats b, Floats c) { return a * b + c; }
MELFLOW_INLINE Floats fused_sub(Floats a, Floats b, Floats c) { return a * b - c; }
#endif
MELFLOW_INLINE Floats square_root(Floats a) {
  for (int i = 0; i < width; ++i) a[i] = std::sqrt(a[i]);
  return a;
}
MELFLOW_INLINE Floats broadcast(float a) { return Floats{a, a, a, a}; }
MELFLOW_INLINE Ints low_halves(Ints a) { return (a << 16) >> 16; }
#endif

struct Lanes {
  using Number = float;
  static constexpr int count = width;
  Floats v;

  MELFLOW_INLINE static Lanes load(const float* from) {
    Lanes l;
    std::memcpy(&l.v, from, sizeof l.v);
    return l;
  }
  // Not 0 + value, which is an addition: it turns -0 into 0.
  MELFLOW_INLINE static Lanes all(float value) { return {broadcast(value)}; }
  MELFLOW_INLINE void store(float* to) const { std::memcpy(to, &v, sizeof v); }

  MELFLOW_INLINE Lanes operator+(Lanes o) const { return {v + o.v}; }
  MELFLOW_INLINE Lanes operator-(Lanes o) const { return {v - o.v}; }
  MELFLOW_INLINE Lanes operator*(Lanes o) const { return {v * o.v}; }
  MELFLOW_INLINE Lanes sqrt() const { return {square_root(v)}; }
  // The larger of the two; NaN if *this is NaN.
  MELFLOW_INLINE Lanes at_least(Lanes o) const { return {v < o.v ? o.v : v}; }
  // The smaller of the two; NaN if *this is NaN.
  MELFLOW_INLINE Lanes at_most(Lanes o) const { return {v > o.v ? o.v : v}; }
  MELFLOW_INLINE Lanes ln() const;
};

MELFLOW_INLINE Lanes mul_add(Lanes a, Lanes b, Lanes c) { return {fused(a.v, b.v, c.v)}; }
// a * b - c
MELFLOW_INLINE Lanes mul_sub(Lanes a, Lanes b, Lanes c) { return {fused_sub(a.v, b.v, c.v)}; }

// Half as many doubles, for own_fft_body.h; nothing is fused.
struct DoubleLanes {
  using Number = double;
  static constexpr int count = width / 2;
  double __attribute__((vector_size(4 * width))) v;

  MELFLOW_INLINE static DoubleLanes load(const double* from) {
    DoubleLanes l;
    std::memcpy(&l.v, from, sizeof l.v);
    return l;
  }
  MELFLOW_INLINE static DoubleLanes all(double value) {
    DoubleLanes l;
    for (int i = 0; i < count; ++i) l.v[i] = value;
    return l;
  }
  MELFLOW_INLINE void store(double* to) const { std::memcpy(to, &v, sizeof v); }

  MELFLOW_INLINE DoubleLanes operator+(DoubleLanes o) const { return {v + o.v}; }
  MELFLOW_INLINE DoubleLanes operator-(DoubleLanes o) const { return {v - o.v}; }
  MELFLOW_INLINE DoubleLanes operator*(DoubleLanes o) const { return {v * o.v}; }
};
MELFLOW_INLINE DoubleLanes mul_add(DoubleLanes a, DoubleLanes b, DoubleLanes c) {
  return a * b + c;
}
MELFLOW_INLINE DoubleLanes mul_sub(DoubleLanes a, DoubleLanes b, DoubleLanes c) {
  return a * b - c;
}

// Natural logarithm of x >= the smallest normal float; x itself if it is infinite or NaN.
// x = 2^e * (1 + r), r in [sqrt(1/2) - 1, sqrt(2) - 1); ln(1 + r) = r + r^2 Q(r), where Q of degree
// 7 minimises the relative error of the logarithm (3.5e-8 with the rounded coefficients). With the
// rounding of the arithmetic the error is 1.2e-7; the unit test allows 1e-6.
MELFLOW_INLINE Lanes Lanes::ln() const {
  constexpr std::int32_t sqrt_half = 0x3f3504f3;  // bits of sqrt(1/2)
  constexpr float q[] = {-0.499999911F, 0.333339512F, -0.250017554F, 0.199620724F,
                         -0.165705085F, 0.149179727F, -0.143075228F, 0.0873484537F};
  const Ints above = std::bit_cast<Ints>(v) - sqrt_half;
  const Ints mantissa_bits = (above & 0x007fffff) + sqrt_half;
  const Lanes r{std::bit_cast<Floats>(mantissa_bits) - 1.0F};
  Lanes poly = all(q[7]);
  for (int i = 6; i >= 0; --i) poly = mul_add(poly, r, all(q[i]));
  const Lanes ln_mantissa = mul_add(r * r, poly, r);
  const Lanes exponent{__builtin_convertvector(above >> 23, Floats)};
  const Lanes ln = mul_add(exponent, all(0.693147181F), ln_mantissa);
  constexpr float largest = 3.40282347e38F;
  return {v <= largest ? ln.v : v};
}

// Loads 128 bits from each of `width` addresses into four vectors: addresses 0, 4, ... into the
// quarters of the first vector, addresses 1, 5, ... into those of the second.
MELFLOW_INLINE void load_quads(const void* const* from, Lanes out[4]) {
  for (int i = 0; i < 4; ++i) {
#if defined(__AVX512F__)
    const __m128 a = _mm_loadu_ps(static_cast<const float*>(from[i]));
    const __m128 b = _mm_loadu_ps(static_cast<const float*>(from[4 + i]));
    const __m128 c = _mm_loadu_ps(static_cast<const float*>(from[8 + i]));
    const __m128 d = _mm_loadu_ps(static_cast<const float*>(from[12 + i]));
    const __m256 ab = _mm256_insertf128_ps(_mm256_castps128_ps256(a), b, 1);
    const __m256 cd = _mm256_insertf128_ps(_mm256_castps128_ps256(c), d, 1);
    out[i].v = Floats(_mm512_insertf64x4(_mm512_castpd256_pd512(__m256d(ab)), __m256d(cd), 1));
#elif defined(__AVX2__)
    const __m128 a = _mm_loadu_ps(static_cast<const float*>(from[i]));
    const __m128 b = _mm_loadu_ps(static_cast<const float*>(from[4 + i]));
    out[i].v = _mm256_insertf128_ps(_mm256_castps128_ps256(a), b, 1);
#else
    std::memcpy(&out[i].v, from[i], sizeof out[i].v);
#endif
  }
}

MELFLOW_INLINE void store_quads(const Lanes in[4], float* const* to, int at) {
  for (int i = 0; i < 4; ++i) {
#if defined(__AVX512F__)
    _mm_storeu_ps(to[i] + at, _mm512_castps512_ps128(in[i].v));
    _mm_storeu_ps(to[4 + i] + at, _mm512_extractf32x4_ps(in[i].v, 1));
    _mm_storeu_ps(to[8 + i] + at, _mm512_extractf32x4_ps(in[i].v, 2));
    _mm_storeu_ps(to[12 + i] + at, _mm512_extractf32x4_ps(in[i].v, 3));
#elif defined(__AVX2__)
    _mm_storeu_ps(to[i] + at, _mm256_castps256_ps128(in[i].v));
    _mm_storeu_ps(to[4 + i] + at, _mm256_extractf128_ps(in[i].v, 1));
#else
    std::memcpy(to[i] + at, &in[i].v, sizeof in[i].v);
#endif
  }
}

// Turns rows of four into columns of four within each 128 bits: the result of load_quads becomes
// value 0 of all addresses, value 1 of all addresses, ..., and back.
MELFLOW_INLINE void transpose_quads(Lanes v[4]) {
  const Floats a = zip_low(v[0].v, v[1].v), b = zip_high(v[0].v, v[1].v);
  const Floats c = zip_low(v[2].v, v[3].v), d = zip_high(v[2].v, v[3].v);
  v[0].v = zip_low_pairs(a, c);
  v[1].v = zip_high_pairs(a, c);
  v[2].v = zip_low_pairs(b, d);
  v[3].v = zip_high_pairs(b, d);
}

}  // namespace
}  // namespace melflow::lanes
