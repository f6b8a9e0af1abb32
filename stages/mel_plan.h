// mel_plan.h - what a mel spectrogram is, worked out once per run and shared by every backend.
//
// In:  MelOptions, the settings as a user writes them.
// Out: MelPlan, immutable: resolved options, analysis window [n_fft], sparse filterbank
//      (per band: first bin, count, weights) and the frame geometry of a unit.
//
// A unit is what is transformed on its own: a whole file or one segment. Frame t of a unit covers
// its samples [t*hop - P, t*hop - P + n_fft), P = n_fft/2 when centred and 0 otherwise.

#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace melflow {

// out = mel * |rfft(window * samples)|^power, then, unless log is none,
// out = factor * (log10(max(amin, out + log_offset)) - log10(max(amin, ref))).
struct MelOptions {
  enum class Window { hann, hamming, blackman, boxcar };
  enum class PadMode { reflect, constant, edge };
  // window: divides the spectrum by sqrt(sum(window^2)); frame_length: by sqrt(n_fft).
  // The names are torchaudio's.
  enum class Normalized { none, window, frame_length };
  enum class MelScale { htk, slaney };
  // slaney: every triangle is scaled to area 1 [1/Hz].
  enum class MelNorm { none, slaney };
  // db: the factor is 20/power, so 10*log10 for power 2 and 20*log10 for power 1; a level in
  // decibels is then the same whichever of the two is chosen. ln and log10: natural factors.
  enum class Log { none, ln, log10, db };

  // Names as they appear in a configuration, indexed by the enumerator.
  static constexpr std::array<std::string_view, 4> window_names{"hann", "hamming", "blackman",
                                                                "boxcar"};
  static constexpr std::array<std::string_view, 3> pad_mode_names{"reflect", "constant", "edge"};
  static constexpr std::array<std::string_view, 3> normalized_names{"none", "window",
                                                                    "frame_length"};
  static constexpr std::array<std::string_view, 2> mel_scale_names{"htk", "slaney"};
  static constexpr std::array<std::string_view, 2> mel_norm_names{"none", "slaney"};
  static constexpr std::array<std::string_view, 4> log_names{"none", "ln", "log10", "db"};

  int sample_rate = 16000;        // [Hz]
  int n_fft = 400;                // [samples], even or odd
  std::optional<int> win_length;  // [samples], default n_fft; a shorter window sits in the middle
  std::optional<int> hop;         // [samples], default win_length / 2
  Window window = Window::hann;
  bool periodic = true;  // false: symmetric, first and last value equal
  bool center = true;    // pads n_fft/2 samples at both ends of a unit
  PadMode pad_mode = PadMode::reflect;
  double power = 2.0;  // exponent of the magnitude
  Normalized normalized = Normalized::none;
  int n_mels = 128;
  double fmin = 0.0;           // [Hz]
  std::optional<double> fmax;  // [Hz], default sample_rate / 2
  MelScale mel_scale = MelScale::htk;
  MelNorm mel_norm = MelNorm::none;
  Log log = Log::none;
  // amin and ref are compared with the mel value itself: a power for power 2, an amplitude for
  // power 1 (as librosa.amplitude_to_db and torchaudio's stype='magnitude' do).
  double amin = 1e-10;           // floor before the log
  double ref = 1.0;              // value that maps to 0
  bool ref_max = false;          // the unit's maximum maps to 0; see UnitFinish in mel_kernel.h
  std::optional<double> top_db;  // [dB] below the unit's maximum, everything lower is raised to it
  double log_offset = 0.0;       // log(x + log_offset), added before the floor
};

// One thing that is wrong with the options: the key and a sentence with the value and what is
// allowed.
struct MelOptionProblem {
  std::string option;
  std::string message;
};

// Every problem of the options; empty when a MelPlan can be made of them.
std::vector<MelOptionProblem> check(const MelOptions& options);

struct MelBand {
  int first_bin = 0;
  int count = 0;           // bins with a positive weight; 0 for an empty band
  int offset = 0;          // of this band's weights in MelPlan::weights()
  double centre_hz = 0.0;  // peak of the triangle
};

class MelPlan {
 public:
  // Throws std::invalid_argument, one line for each of check(options).
  explicit MelPlan(const MelOptions& options);

  // win_length, hop and fmax have a value here.
  const MelOptions& options() const { return options_; }
  int n_fft() const { return options_.n_fft; }
  int hop() const { return *options_.hop; }
  int n_mels() const { return options_.n_mels; }
  int n_bins() const { return options_.n_fft / 2 + 1; }
  // Samples padded at each end of a unit: n_fft/2 when centred, else 0.
  int pad() const { return options_.center ? options_.n_fft / 2 : 0; }

  // [n_fft], zero outside win_length, the factor of `normalized` included.
  std::span<const double> window_double() const { return window_double_; }
  std::span<const float> window() const { return window_; }

  std::span<const MelBand> bands() const { return bands_; }    // [n_mels]
  std::span<const float> weights() const { return weights_; }  // bands one after another
  std::vector<float> band_weights_dense() const;               // [n_mels, n_bins]
  // Bands so narrow that no FFT bin falls inside: their value is always 0. Worth a warning.
  int empty_bands() const { return empty_bands_; }

  // Factor and shift of the log, so that out = log_factor * ln(max(amin, x + log_offset)) -
  // log_shift. Meaningless when log is none.
  double log_factor() const { return log_factor_; }
  double log_shift() const { return log_shift_; }

  // Frames of a unit of n_samples. Centred: 1 + n/hop for even n_fft; else 1 + (n - n_fft)/hop.
  // A unit without samples has none, nor has an uncentred one shorter than n_fft.
  std::int64_t frames(std::int64_t n_samples) const;
  // Frames that can be computed when the first n_seen samples of a unit are known and whether
  // more follow is not. Never more than frames(n_seen).
  std::int64_t frames_ready(std::int64_t n_seen) const;
  // When every ready frame of n_seen samples is computed, the remaining ones (wherever the unit
  // ends, right padding included) need no sample before n_seen - context().
  std::int64_t context() const;

 private:
  void make_bands();

  MelOptions options_;
  std::vector<double> window_double_;
  std::vector<float> window_;
  std::vector<MelBand> bands_;
  std::vector<float> weights_;
  int empty_bands_ = 0;
  double log_factor_ = 1.0;
  double log_shift_ = 0.0;
};

}  // namespace melflow
