// The computation of the hand-fused rival for one recording, without any file access.
//
// In:  40,960 samples, int16.
// Out: rows of 32 bands [dB], float32.
//      Windows::kTwoStage, 237 rows: 79 long windows of 1024 every 512, three short windows of 512
//      every 256 inside each. Short window j of long window i is distinct window 2i + j; only the
//      159 distinct ones are computed.
//      Windows::kPlain, 80 rows: windows of 512 one after another.
//
// FftKind::kReal runs FFTW's real transform, one window at a time: what most people would write.
// kPair puts two windows into the real and imaginary part of one complex transform and separates
// the spectra afterwards, because FFTW's complex codelets use SIMD and most real ones do not. This
// is a header so that all of it can be inlined.

#pragma once

#include <fftw3.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>
#include <numbers>
#include <stdexcept>
#include <vector>

namespace melflow {

enum class FftKind { kReal, kPair };
enum class Windows { kTwoStage, kPlain };

constexpr int kSamples = 40960;  // in a file
constexpr int kFft = 512;        // window and transform [samples]
constexpr int kStep = 256;       // between distinct windows
constexpr int kBins = kFft / 2 + 1;
constexpr int kBands = 32;
constexpr int kLong = (kSamples - 1024) / 512 + 1;        // 79
constexpr int kShort = 3;                                 // inside each long window
constexpr int kRows = kLong * kShort;                     // 237
constexpr int kDistinct = (kSamples - kFft) / kStep + 1;  // 159
constexpr int kLanes = 8;
constexpr int kPowerStride = 320;  // bins, padded so that whole vectors may be read past the last
constexpr int kPlainRows = kSamples / kFft;  // 80
static_assert(kDistinct == 2 * (kLong - 1) + kShort);

// GCC's vector extension: eight lanes, compiled to the instructions of the target machine.
using Floats = float __attribute__((vector_size(32)));
using Ints = std::int32_t __attribute__((vector_size(32)));
using Shorts = std::int16_t __attribute__((vector_size(16)));

template <class Vector>
Vector load(const void* from) {
  Vector v;
  std::memcpy(&v, from, sizeof v);
  return v;
}
inline void store(float* to, Floats v) { std::memcpy(to, &v, sizeof v); }
inline Floats splat(float x) { return Floats{} + x; }

struct FftwFree {
  void operator()(float* p) const { fftwf_free(p); }
};
using Aligned = std::unique_ptr<float, FftwFree>;
inline Aligned aligned(std::size_t n) {
  Aligned p(fftwf_alloc_real(n));
  std::fill_n(p.get(), n, 0.0F);
  return p;
}

/// 10 log10(max(x, 1e-10)): splits off the exponent, and computes log2 of the mantissa in [0.75,
/// 1.5) by the series of 2 atanh((m - 1) / (m + 1)). Within 1e-5 dB of the exact value.
inline Floats decibels(Floats x) {
  x = x > 1e-10F ? x : splat(1e-10F);
  const Ints bits = load<Ints>(&x);
  const Ints shifted = bits - 0x3F400000;  // relative to the bits of 0.75
  const Ints exponent = shifted >> 23;
  const Ints mantissa_bits = bits - (exponent << 23);
  const auto m = load<Floats>(&mantissa_bits);
  const Floats s = (m - 1.0F) / (m + 1.0F);  // |s| <= 0.2
  const Floats s2 = s * s;
  Floats series = s2 * (1.0F / 9) + 1.0F / 7;
  series = series * s2 + 1.0F / 5;
  series = series * s2 + 1.0F / 3;
  series = series * s2 + 1.0F;
  constexpr auto kDbPerOctave = static_cast<float>(10 * std::numbers::ln2 / std::numbers::ln10);
  constexpr auto kDbPerNeper = static_cast<float>(20 / std::numbers::ln10);
  return __builtin_convertvector(exponent, Floats) * kDbPerOctave + s * series * kDbPerNeper;
}

/// Triangles on the HTK mel scale, equal to torchaudio's melscale_fbanks(norm=None,
/// mel_scale="htk"). Each band is stored as its range of nonzero bins, padded with zeros to whole
/// vectors.
struct Filterbank {
  struct Band {
    int first;    // bin
    int vectors;  // of kLanes bins
    int weights;  // where they start in `weights`
  };
  std::array<Band, kBands> bands{};
  std::vector<float> weights;

  explicit Filterbank(double rate) {
    const double top = 2595 * std::log10(1 + rate / 2 / 700);
    std::array<double, kBands + 2> hz{};
    for (int i = 0; i < kBands + 2; ++i)
      hz[i] = 700 * (std::pow(10, top * i / (kBands + 1) / 2595) - 1);
    for (int b = 0; b < kBands; ++b) {
      std::vector<float> row;
      int first = kBins;
      for (int k = 0; k < kBins; ++k) {
        const double f = rate / 2 * k / (kBins - 1);
        const double w =
            std::min((f - hz[b]) / (hz[b + 1] - hz[b]), (hz[b + 2] - f) / (hz[b + 2] - hz[b + 1]));
        if (w <= 0) continue;
        first = std::min(first, k);
        row.push_back(static_cast<float>(w));
      }
      row.resize((row.size() + kLanes - 1) / kLanes * kLanes);
      bands[b] = {first, static_cast<int>(row.size()) / kLanes, static_cast<int>(weights.size())};
      weights.insert(weights.end(), row.begin(), row.end());
    }
  }
};

/// Sums each of eight vectors over its lanes, in three rounds of interleave-and-add.
inline Floats lane_sums(const std::array<Floats, 8>& v) {
  const auto round1 = [](Floats a, Floats b) {
    return __builtin_shufflevector(a, b, 0, 8, 2, 10, 4, 12, 6, 14) +
           __builtin_shufflevector(a, b, 1, 9, 3, 11, 5, 13, 7, 15);
  };
  const auto round2 = [](Floats a, Floats b) {
    return __builtin_shufflevector(a, b, 0, 1, 8, 9, 4, 5, 12, 13) +
           __builtin_shufflevector(a, b, 2, 3, 10, 11, 6, 7, 14, 15);
  };
  const Floats low = round2(round1(v[0], v[1]), round1(v[2], v[3]));
  const Floats high = round2(round1(v[4], v[5]), round1(v[6], v[7]));
  return __builtin_shufflevector(low, high, 0, 1, 2, 3, 8, 9, 10, 11) +
         __builtin_shufflevector(low, high, 4, 5, 6, 7, 12, 13, 14, 15);
}

/// Converts a power spectrum [kPowerStride] to bands in dB and stores them at `row`.
inline void mel_row(const Filterbank& bank, const float* power, float* row) {
  for (int b = 0; b < kBands; b += kLanes) {
    std::array<Floats, kLanes> sums{};
    for (int i = 0; i < kLanes; ++i) {
      const Filterbank::Band& band = bank.bands[b + i];
      const float* w = &bank.weights[band.weights];
      for (int v = 0; v < band.vectors; ++v) {
        sums[i] += load<Floats>(w + v * kLanes) * load<Floats>(power + band.first + v * kLanes);
      }
    }
    store(row + b, decibels(lane_sums(sums)));
  }
}

/// The data that all threads share. Planning is not thread-safe, so it is done here, once.
class Plan {
 public:
  Plan(FftKind kind, double rate)
      : pair_(kind == FftKind::kPair), bank_(rate), window_(aligned(kFft)) {
    // The spectra of a pair come out doubled, so their window is halved. The window also contains
    // the samples' factor 1/32768.
    const double scale = (pair_ ? 0.5 : 1.0) / 32768;
    for (int n = 0; n < kFft; ++n) {
      window_.get()[n] =
          static_cast<float>(scale * (0.5 - 0.5 * std::cos(2 * std::numbers::pi * n / kFft)));
    }
    const Aligned in = aligned(2 * kFft), out = aligned(2 * kFft + kLanes);
    auto* complex_in = reinterpret_cast<fftwf_complex*>(in.get());
    auto* complex_out = reinterpret_cast<fftwf_complex*>(out.get());
    fft_ = pair_ ? fftwf_plan_dft_1d(kFft, complex_in, complex_out, FFTW_FORWARD, FFTW_MEASURE)
                 : fftwf_plan_dft_r2c_1d(kFft, in.get(), complex_out, FFTW_MEASURE);
    if (fft_ == nullptr) throw std::runtime_error("FFTW has no plan");
  }
  ~Plan() { fftwf_destroy_plan(fft_); }
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;

  bool pair() const { return pair_; }
  const Filterbank& bank() const { return bank_; }
  const float* window() const { return window_.get(); }
  fftwf_plan fft() const { return fft_; }

 private:
  bool pair_;
  Filterbank bank_;
  Aligned window_;
  fftwf_plan fft_;
};

/// One thread's buffers and its work on one file: samples in, rows out.
class Worker {
 public:
  Worker(const Plan& plan, Windows windows)
      : plan_(plan),
        is_plain_(windows == Windows::kPlain),
        step_(is_plain_ ? kFft : kStep),
        distinct_(is_plain_ ? kPlainRows : kDistinct) {}

  int rows() const { return is_plain_ ? kPlainRows : kRows; }

  void run(const std::int16_t* samples, float* rows) {
    for (int d = 0; d < distinct_; d += plan_.pair() ? 2 : 1) {
      const std::int16_t* a = samples + d * step_;
      if (plan_.pair()) {
        const bool both = d + 1 < distinct_;
        two_spectra(a, both ? a + step_ : a);
        emit(d, power_.get(), rows);
        if (both) emit(d + 1, power_.get() + kPowerStride, rows);
      } else {
        one_spectrum(a);
        emit(d, power_.get(), rows);
      }
    }
  }

 private:
  static Floats samples8(const std::int16_t* s) {
    return __builtin_convertvector(load<Shorts>(s), Floats);
  }

  void one_spectrum(const std::int16_t* s) {
    float* in = in_.get();
    float* z = out_.get();  // interleaved, kBins
    for (int n = 0; n < kFft; n += kLanes)
      store(in + n, samples8(s + n) * load<Floats>(plan_.window() + n));
    fftwf_execute_dft_r2c(plan_.fft(), in, reinterpret_cast<fftwf_complex*>(z));
    for (int k = 0; k < kBins - 1; k += kLanes) {
      const auto x = load<Floats>(z + 2 * k), y = load<Floats>(z + 2 * k + kLanes);
      const Floats x2 = x * x, y2 = y * y;
      store(power_.get() + k, __builtin_shufflevector(x2, y2, 0, 2, 4, 6, 8, 10, 12, 14) +
                                  __builtin_shufflevector(x2, y2, 1, 3, 5, 7, 9, 11, 13, 15));
    }
    const int last = kBins - 1;
    power_.get()[last] = z[2 * last] * z[2 * last] + z[2 * last + 1] * z[2 * last + 1];
  }

  /// z = FFT(a + ib). With p + iq = z[k] and r + is = z[N - k]:
  /// 4|A[k]|^2 = (p + r)^2 + (q - s)^2 and 4|B[k]|^2 = (p - r)^2 + (q + s)^2; the 4 is in the
  /// window.
  void two_spectra(const std::int16_t* a, const std::int16_t* b) {
    float* in = in_.get();
    float* z = out_.get();  // interleaved, kFft bins and the first one again
    for (int n = 0; n < kFft; n += kLanes) {
      const auto w = load<Floats>(plan_.window() + n);
      const Floats x = samples8(a + n) * w, y = samples8(b + n) * w;
      store(in + 2 * n, __builtin_shufflevector(x, y, 0, 8, 1, 9, 2, 10, 3, 11));
      store(in + 2 * n + kLanes, __builtin_shufflevector(x, y, 4, 12, 5, 13, 6, 14, 7, 15));
    }
    fftwf_execute_dft(plan_.fft(), reinterpret_cast<fftwf_complex*>(in),
                      reinterpret_cast<fftwf_complex*>(z));
    std::memcpy(z + 2 * kFft, z,
                2 * sizeof(float));  // z[N] = z[0], so that bin 0 is no special case
    struct Squares {
      Floats sum, difference;  // of the pairs (p, q) and (r, s), for four bins
    };
    const auto squares = [z](int k) -> Squares {
      const auto front = load<Floats>(z + 2 * k);
      const auto tail = load<Floats>(z + 2 * (kFft - k - 3));
      const Floats back = __builtin_shufflevector(tail, tail, 6, 7, 4, 5, 2, 3, 0, 1);
      const Floats sum = front + back, difference = front - back;
      return {sum * sum, difference * difference};
    };
    float* power_a = power_.get();
    float* power_b = power_a + kPowerStride;
    for (int k = 0; k < kBins - 1; k += kLanes) {
      const Squares x = squares(k), y = squares(k + 4);
      store(power_a + k,
            __builtin_shufflevector(x.sum, y.sum, 0, 2, 4, 6, 8, 10, 12, 14) +
                __builtin_shufflevector(x.difference, y.difference, 1, 3, 5, 7, 9, 11, 13, 15));
      store(power_b + k,
            __builtin_shufflevector(x.sum, y.sum, 1, 3, 5, 7, 9, 11, 13, 15) +
                __builtin_shufflevector(x.difference, y.difference, 0, 2, 4, 6, 8, 10, 12, 14));
    }
    const int last = kBins - 1;  // Nyquist is its own mirror image
    power_a[last] = 4 * z[2 * last] * z[2 * last];
    power_b[last] = 4 * z[2 * last + 1] * z[2 * last + 1];
  }

  /// Window d is short window 0 of long window d/2 and 2 of the one before or, for odd d, short
  /// window 1.
  void emit(int d, const float* power, float* rows) {
    std::array<float, kBands> row;
    mel_row(plan_.bank(), power, row.data());
    if (is_plain_) {
      std::memcpy(rows + d * kBands, row.data(), sizeof row);
      return;
    }
    const int i = d / 2;
    if (d % 2 == 1) {
      std::memcpy(rows + (i * kShort + 1) * kBands, row.data(), sizeof row);
      return;
    }
    if (i < kLong) std::memcpy(rows + i * kShort * kBands, row.data(), sizeof row);
    if (i > 0) std::memcpy(rows + ((i - 1) * kShort + 2) * kBands, row.data(), sizeof row);
  }

  const Plan& plan_;
  bool is_plain_;
  int step_, distinct_;  // samples between the computed windows, and their number
  Aligned in_ = aligned(2 * kFft);
  Aligned out_ = aligned(2 * kFft + kLanes);
  Aligned power_ = aligned(2 * kPowerStride);
};

}  // namespace melflow
