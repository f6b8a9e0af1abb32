// mel_options.h - every setting of a mel front end, and what is allowed.
//
// In:  the settings of one mel stage.
// Out: what is wrong with them, and their canonical form: derived defaults filled in.
//
// What is done with a frame of a unit (a file or one segment), in this order:
//   samples * input_scale, + dither, pre-emphasis of the signal, padding at the unit's ends,
//   frame, - its mean (remove_dc), raw energy, pre-emphasis of the frame, window, energy,
//   |rfft|^2 + power_offset, ^(power/2), mel bands, log; then whatever needs the whole unit
//   (unit_finish.h): reference, top_db, normalisation.
// Every step but framing, window, rfft and power can be off.

#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace melflow {

// With a log, out = factor * (log10(max(amin, x + log_offset)) - log10(max(amin, ref))).
struct MelOptions {
  enum class Window { hann, hamming, blackman, blackman_harris, kaiser, gauss, povey, boxcar };
  // Where a window shorter than n_fft sits in it. left: a frame is win_length samples, followed by
  // zeros (Kaldi); center: a frame is n_fft samples, whatever the window covers of them.
  enum class Align { center, left };
  // reflect: the end samples are not repeated; symmetric: they are (Kaldi); edge: nothing else is.
  enum class PadMode { reflect, symmetric, constant, edge };
  enum class PreemphasisOf { signal, frame };
  // window: divides the spectrum by sqrt(sum(window^2)); frame_length: by sqrt(n_fft).
  // The names are torchaudio's.
  enum class Normalized { none, window, frame_length };
  enum class Output { mel, spectrogram };
  // htk: 2595 log10(1 + f/700); kaldi: 1127 ln(1 + f/700), HTK's own rounded constant; slaney:
  // linear below 1 kHz.
  enum class MelScale { htk, slaney, kaldi };
  // slaney: every triangle is scaled to area 1 [1/Hz].
  enum class MelNorm { none, slaney };
  // Flanks straight over Hz, or over mel (Kaldi); left_width: over Hz, the right flank as wide as
  // the left one (SpeechBrain).
  enum class Triangles { hz, mel, left_width };
  // db: the factor is 20/power, so 10*log10 for power 2 and 20*log10 for power 1; a level in
  // decibels is then the same whichever of the two is chosen. ln and log10: natural factors.
  enum class Log { none, ln, log10, db };
  // fixed: by norm_mean and norm_std; per_feature: by each column's own over the unit;
  // all_features: by those of all of the unit's values. NeMo's names.
  enum class Normalize { none, fixed, per_feature, all_features };
  // What everything from the samples to a row is computed in; rows are float32 in any case.
  enum class Precision { float32, float64 };

  // Names as they appear in a configuration, indexed by the enumerator.
  static constexpr std::array<std::string_view, 8> window_names{
      "hann", "hamming", "blackman", "blackman_harris", "kaiser", "gauss", "povey", "boxcar"};
  static constexpr std::array<std::string_view, 2> align_names{"center", "left"};
  static constexpr std::array<std::string_view, 4> pad_mode_names{"reflect", "symmetric",
                                                                  "constant", "edge"};
  static constexpr std::array<std::string_view, 2> preemphasis_of_names{"signal", "frame"};
  static constexpr std::array<std::string_view, 3> normalized_names{"none", "window",
                                                                    "frame_length"};
  static constexpr std::array<std::string_view, 2> output_names{"mel", "spectrogram"};
  static constexpr std::array<std::string_view, 3> mel_scale_names{"htk", "slaney", "kaldi"};
  static constexpr std::array<std::string_view, 2> mel_norm_names{"none", "slaney"};
  static constexpr std::array<std::string_view, 3> triangles_names{"hz", "mel", "left_width"};
  static constexpr std::array<std::string_view, 4> log_names{"none", "ln", "log10", "db"};
  static constexpr std::array<std::string_view, 4> normalize_names{"none", "fixed", "per_feature",
                                                                   "all_features"};
  static constexpr std::array<std::string_view, 2> precision_names{"float", "double"};

  int sample_rate = 16000;  // [Hz]

  // Conditioning. Full scale is 1 before input_scale.
  double input_scale = 1.0;
  double dither = 0.0;  // standard deviation of the noise, in units of the scaled samples
  std::int64_t dither_seed = 0;
  double preemphasis = 0.0;  // k of x[t] - k x[t-1]; of a frame's first sample: x[0] - k x[0]
  PreemphasisOf preemphasis_of = PreemphasisOf::signal;
  bool remove_dc = false;  // subtracts each frame's mean

  // Framing.
  int n_fft = 400;                // [samples], even or odd
  std::optional<int> win_length;  // [samples], default n_fft
  std::optional<int> hop;         // [samples], default win_length / 2
  Align align = Align::center;
  Window window = Window::hann;
  bool periodic = true;             // false: symmetric, first and last value equal
  double kaiser_beta = 14.0;        // window: kaiser
  std::optional<double> gauss_std;  // [samples], window: gauss; default win_length / 8
  bool center = true;               // pads half a frame at both ends of a unit
  std::optional<int> pad;  // [samples] at both ends; default half a frame when centred, else 0
  // Kaldi's placing: true is the same as center: false; false: frame t is centred at (t + 1/2) hop
  // and there are (n + hop/2) / hop of them. Not set: center decides.
  std::optional<bool> snip_edges;
  PadMode pad_mode = PadMode::reflect;
  bool drop_last = false;  // leaves a unit's last frame out (Whisper, NeMo)

  // Spectrum.
  Normalized normalized = Normalized::none;
  double power = 2.0;         // exponent of the magnitude
  double power_offset = 0.0;  // added to the squared magnitude
  Output output = Output::mel;

  // Filterbank.
  int n_mels = 128;
  double fmin = 0.0;           // [Hz]
  std::optional<double> fmax;  // [Hz], 0 or less: from sample_rate / 2, which is the default
  MelScale mel_scale = MelScale::htk;
  MelNorm mel_norm = MelNorm::none;
  Triangles triangles = Triangles::hz;
  // As in HTK: band 0 loses its first weight when fmin is above 0, and bands are floored at 1 (of
  // samples in the range of int16).
  bool htk_mode = false;
  double vtln_warp = 1.0;     // vocal tract length warp factor; the bands' corners are moved
  double vtln_low = 100.0;    // [Hz] lower end of the warped range's linear part
  double vtln_high = -500.0;  // [Hz] upper end, 0 or less: from sample_rate / 2

  // Energy: one more column with the natural logarithm of a frame's sum of squares.
  bool use_energy = false;
  bool raw_energy = true;     // before pre-emphasis and window; false: after them
  double energy_floor = 0.0;  // of the sum of squares; 0: the smallest float step, 1.2e-7
  bool htk_compat = false;    // the energy is the last column, not the first

  // Logarithm. amin and ref are compared with the value itself: a power for power 2, an amplitude
  // for power 1 (as librosa.amplitude_to_db and torchaudio's stype='magnitude' do).
  Log log = Log::none;
  double amin = 1e-10;           // floor before the log
  double ref = 1.0;              // value that maps to 0
  bool ref_max = false;          // the unit's maximum maps to 0
  std::optional<double> top_db;  // [dB] below the unit's maximum; everything lower is raised to it,
                                 // whatever the unit of the log
  double log_offset = 0.0;       // log(x + log_offset), added before the floor

  // (x - mean) / (std + norm_eps)
  Normalize normalize = Normalize::none;
  std::vector<double> norm_mean;  // fixed: one, or one for each column
  std::vector<double> norm_std;   // fixed: as norm_mean; empty: 1
  bool norm_variance = true;      // false: only the mean is subtracted
  double norm_eps = 1e-5;         // per_feature and all_features

  Precision precision = Precision::float32;

  friend bool operator==(const MelOptions&, const MelOptions&) = default;
};

// Kaldi's floor of an energy: the step of a float at 1.
constexpr double kEnergyEpsilon = 1.1920928955078125e-07;

// One thing that is wrong with the options: the key and a sentence with the value and what is
// allowed.
struct MelOptionProblem {
  std::string option;
  std::string message;
};

// Every problem of the options; empty when a MelPlan can be made of them.
std::vector<MelOptionProblem> check(const MelOptions& options);

// Derived defaults filled in: win_length, hop, pad, fmax and vtln_high [Hz], gauss_std; ends that
// snip_edges decides. Requires check(options) to be empty.
MelOptions resolve(const MelOptions& options);

// Values of a frame: bands or bins, and the energy.
int columns(const MelOptions& options);

}  // namespace melflow
