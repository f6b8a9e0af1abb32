// mel_loops.cpp - window, power, sparse filterbank and logarithm over vectors of eight.
//
// V is simd::Wide or simd::Pair; the functions at the end instantiate the loops for an instruction
// set, and best_loops chooses among them when the program runs.
//
// Compiled with -O3 -fno-math-errno -fno-trapping-math -Wno-psabi: errno would keep sqrt from
// being vectorised, and the last says that vectors would be passed differently elsewhere, which
// they never are.

#include "stages/mel_loops.h"

#include <cmath>
#include <cstddef>
#include <cstring>

#define MELFLOW_INLINE [[gnu::always_inline]] inline

namespace melflow::loops {
namespace {

using simd::ComplexOf;

template <class V>
MELFLOW_INLINE void ln_row(const float* values, std::int64_t n, float* out) {
  for (std::int64_t i = 0; i < n; i += lanes) {
    const auto bytes = static_cast<std::size_t>(n - i < lanes ? n - i : lanes) * sizeof(float);
    float x[lanes] = {1.0F, 1.0F, 1.0F, 1.0F, 1.0F, 1.0F, 1.0F, 1.0F};
    std::memcpy(x, values + i, bytes);
    V::load(x).ln().store(x);
    std::memcpy(out + i, x, bytes);
  }
}

template <class Sample>
MELFLOW_INLINE void apply_window(const Sample* samples, const float* window, int n, float* out) {
  for (int i = 0; i < n; ++i) out[i] = static_cast<float>(samples[i]) * window[i];
}

// Squared magnitudes of a real signal's bins from the transform Z of its even (re) and odd (im)
// samples: with E, O the transforms of the two, X[k] = E[k] + exp(-2 pi i k / n) O[k], and
// X[n/2 - k] is the conjugate of E[k] - exp(...) O[k]. The usual halves of E and O are in the
// window. Z[half] stands for Z[0].
template <class V>
MELFLOW_INLINE void power_of_halves(const RowTables& t, const float* spectrum, float* power) {
  const float* twiddle = t.twiddle.data();
  for (int k = 0; k <= t.half / 2; k += lanes, twiddle += 2 * lanes) {
    const int mirrored = t.half - k - (lanes - 1);
    const ComplexOf<V> low = V::load_folded(spectrum + 2 * k);
    const ComplexOf<V> high = V::load_folded_backwards(spectrum + 2 * mirrored);
    const V even_re = low.re + high.re;
    const V even_im = low.im - high.im;
    const V diff_re = low.re - high.re;
    const V diff_im = low.im + high.im;
    const V turn_re = V::load(twiddle);
    const V turn_im = V::load(twiddle + lanes);
    const V odd_re = diff_re * turn_re - diff_im * turn_im;
    const V odd_im = diff_re * turn_im + diff_im * turn_re;
    const V a_re = even_re + odd_re;
    const V a_im = even_im + odd_im;
    const V b_re = even_re - odd_re;
    const V b_im = even_im - odd_im;
    (a_re * a_re + a_im * a_im).store_folded(power + k);
    (b_re * b_re + b_im * b_im).store_folded_backwards(power + mirrored);
  }
}

template <class V>
MELFLOW_INLINE void power_of_bins(const RowTables& t, const float* spectrum, float* power) {
  for (int k = 0; k < t.n_bins; k += lanes) {
    const ComplexOf<V> x = V::load_folded(spectrum + 2 * k);
    (x.re * x.re + x.im * x.im).store_folded(power + k);
  }
}

// Weighted sums of a group's bands, each over `vectors` * 8 bins. A number known to the compiler
// makes straight code of it, twice as fast for the usual narrow bands.
template <class V>
MELFLOW_INLINE V group_sums(const std::int32_t* first_bin, int vectors, const float* weights,
                            const float* power) {
  V sums[lanes];
  for (int i = 0; i < lanes; ++i) {
    const float* bins = power + first_bin[i];
    V sum = V::all(0.0F);
    for (int v = 0; v < vectors; ++v, weights += lanes, bins += lanes) {
      sum = sum + V::load(weights) * V::load(bins);
    }
    sums[i] = sum;
  }
  return V::horizontal_sums(sums);
}

// Eight values to the row from `at` on, fewer at its end; with a log as levels.
template <class V>
MELFLOW_INLINE void store_level(const RowTables& t, V value, int at, int count, float* row) {
  if (t.floor > 0.0F) value = value.at_least(V::all(t.floor));
  if (t.log) {
    value = (value + V::all(t.offset)).at_least(V::all(t.amin));
    value = value.ln() * V::all(t.factor) - V::all(t.shift);
  }
  if (at + lanes <= count) {
    value.store(row + at);
  } else {
    float last[lanes];
    value.store(last);
    std::memcpy(row + at, last, static_cast<std::size_t>(count - at) * sizeof(float));
  }
}

template <class V>
MELFLOW_INLINE void mel_row(const RowTables& t, const float* power, float* row) {
  const float* weights = t.weights.data();
  for (int m = 0; m < t.n_mels; m += lanes) {
    const std::int32_t* first = t.first_bin.data() + m;
    const int vectors = t.vectors[m / lanes];
    V value;
    switch (vectors) {
      case 1:
        value = group_sums<V>(first, 1, weights, power);
        break;
      case 2:
        value = group_sums<V>(first, 2, weights, power);
        break;
      case 3:
        value = group_sums<V>(first, 3, weights, power);
        break;
      case 4:
        value = group_sums<V>(first, 4, weights, power);
        break;
      default:
        value = group_sums<V>(first, vectors, weights, power);
        break;
    }
    weights += static_cast<std::ptrdiff_t>(vectors) * lanes * lanes;
    store_level(t, value, m, t.n_mels, row);
  }
}

// The bins as they are, for a spectrogram.
template <class V>
MELFLOW_INLINE void bin_row(const RowTables& t, const float* power, float* row) {
  for (int k = 0; k < t.n_bins; k += lanes) store_level(t, V::load(power + k), k, t.n_bins, row);
}

// spectrum and power: first bin; see power_of_halves for their padding.
template <class V>
MELFLOW_INLINE void spectrum_to_row(const RowTables& t, float* spectrum, float* power, float* row) {
  if (t.half > 0) {
    spectrum[2 * t.half] = spectrum[0];
    spectrum[2 * t.half + 1] = spectrum[1];
    power_of_halves<V>(t, spectrum, power);
  } else {
    power_of_bins<V>(t, spectrum, power);
  }
  if (t.power_offset > 0.0F) {
    for (int k = 0; k < t.n_bins; ++k) power[k] += t.power_offset;
  }
  if (t.power == 1.0) {
    for (int k = 0; k < t.n_bins; ++k) power[k] = std::sqrt(power[k]);
  } else if (t.power != 2.0) {
    const auto exponent = static_cast<float>(t.power / 2.0);
    for (int k = 0; k < t.n_bins; ++k) power[k] = std::pow(power[k], exponent);
  }
  if (t.n_mels > 0) {
    mel_row<V>(t, power, row);
  } else {
    bin_row<V>(t, power, row);
  }
}

constexpr Loops baseline{
    "baseline",
    [](const std::int16_t* s, const float* w, int n, float* o) { apply_window(s, w, n, o); },
    [](const float* s, const float* w, int n, float* o) { apply_window(s, w, n, o); },
    [](const RowTables& t, float* s, float* p, float* r) {
      spectrum_to_row<simd::Pair>(t, s, p, r);
    },
    [](const float* x, std::int64_t n, float* o) { ln_row<simd::Pair>(x, n, o); }};

}  // namespace

const Loops& baseline_loops() { return baseline; }

#if defined(__x86_64__)
namespace {

#define MELFLOW_AVX2 __attribute__((target("avx2,fma")))
MELFLOW_AVX2 void window_int16_avx2(const std::int16_t* s, const float* w, int n, float* o) {
  apply_window(s, w, n, o);
}
MELFLOW_AVX2 void window_float_avx2(const float* s, const float* w, int n, float* o) {
  apply_window(s, w, n, o);
}
MELFLOW_AVX2 void spectrum_to_row_avx2(const RowTables& t, float* s, float* p, float* r) {
  spectrum_to_row<simd::Wide>(t, s, p, r);
}
MELFLOW_AVX2 void ln_avx2(const float* x, std::int64_t n, float* o) { ln_row<simd::Wide>(x, n, o); }
#undef MELFLOW_AVX2
constexpr Loops avx2{"avx2", window_int16_avx2, window_float_avx2, spectrum_to_row_avx2, ln_avx2};

}  // namespace

const Loops& best_loops() {
  static const bool has_avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  return has_avx2 ? avx2 : baseline;
}
#else
const Loops& best_loops() { return baseline; }
#endif

}  // namespace melflow::loops

#undef MELFLOW_INLINE
