// mel_options.h - every setting of a mel front end, and its allowed values.
//
// In:  the settings of one mel stage.
// Out: the problems of these settings, and their canonical form: derived defaults filled in.
//
// The steps for each frame of an utterance (a file or one segment), in this order:
//   samples * input_scale, + dither, pre-emphasis of the signal, padding at the utterance's ends,
//   frame, - its mean (remove_dc), raw energy, pre-emphasis of the frame, window, energy,
//   |rfft|^2 + power_offset, power_floor and power_ceiling, ^(power/2), mel bands, log; then the
//   steps that need the whole utterance (utterance_steps.h): reference, top_db, normalisation.
// Every step but framing, window, rfft and power can be off.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "stages/features/mel/option_table.h"

namespace melflow {

// Kaldi's floor of an energy: the step of a float at 1.
constexpr double kEnergyEpsilon = 1.1920928955078125e-07;
constexpr double kHammingAlpha = 0.54;
constexpr double kBlackmanCoeff = 0.42;

// Their effects, units and ranges: mel_option_table.cpp, in the same order. A new option is a
// member here and a row there.
//
// With a log, out = factor * (log10(max(amin, x + log_offset)) - log10(max(amin, ref))).
struct MelOptions {
  // Choices, and their names in a configuration.
  enum class Window {
    hann,
    hamming,
    blackman,
    blackman_harris,
    nuttall,
    kaiser,
    gauss,
    bartlett,
    cosine,
    sine,
    tukey,
    povey,
    boxcar,
    values
  };
  friend constexpr auto names(Window) {
    return choice_names("hann", "hamming", "blackman", "blackman_harris", "nuttall", "kaiser",
                        "gauss", "bartlett", "cosine", "sine", "tukey", "povey", "boxcar",
                        "values");
  }
  enum class Align { center, left };
  friend constexpr auto names(Align) { return choice_names("center", "left"); }
  enum class PadMode { reflect, symmetric, constant, edge, linear_ramp };
  friend constexpr auto names(PadMode) {
    return choice_names("reflect", "symmetric", "constant", "edge", "linear_ramp");
  }
  enum class PreemphasisOf { signal, frame };
  friend constexpr auto names(PreemphasisOf) { return choice_names("signal", "frame"); }
  // y[0] of y[t] = x[t] - k x[t-1]: x[0]; x[0] - k x[1] (torch.nn.functional.pad with reflect); no
  // y[0], y[1] is the first sample; x[0] - k x[0]; 3 x[0] - x[1] (librosa.effects.preemphasis). A
  // signal of one sample has x[1] = x[0].
  enum class PreemphasisFirst { keep, reflect, drop, replicate, librosa };
  friend constexpr auto names(PreemphasisFirst) {
    return choice_names("keep", "reflect", "drop", "replicate", "librosa");
  }
  // Frames that reach past the end, into zeros: none; the first of them, if samples are behind the
  // last whole frame, and one in any case; all that begin before the end.
  enum class PartialFrames { none, last, all };
  friend constexpr auto names(PartialFrames) { return choice_names("none", "last", "all"); }
  enum class Normalized { none, window, frame_length };
  friend constexpr auto names(Normalized) { return choice_names("none", "window", "frame_length"); }
  enum class Output { mel, spectrogram };
  friend constexpr auto names(Output) { return choice_names("mel", "spectrogram"); }
  // kaldi's 1127 is HTK's own rounded constant.
  enum class MelScale { htk, slaney, kaldi };
  friend constexpr auto names(MelScale) { return choice_names("htk", "slaney", "kaldi"); }
  // slaney: multiplies a band's weights w by 2 / (right - left corner in Hz). The others divide
  // them: 1 by the sum of w, 2 by the root of the sum of w^2, inf by the largest w
  // (librosa.filters.mel, by librosa.util.normalize; 1 also Lhotse's create_mel_scale with
  // norm_filters).
  enum class MelNorm { none, slaney, sum, root, max };
  friend constexpr auto names(MelNorm) { return choice_names("none", "slaney", "1", "2", "inf"); }
  // The frequency of bin k at which a triangle is evaluated: k sample_rate / n_fft; the top bin
  // n_fft // 2 at sample_rate // 2 (torchaudio, SpeechBrain); k sample_rate / (n_fft - 1) (Lhotse).
  enum class BinHz { exact, torchaudio, speechbrain, lhotse };
  friend constexpr auto names(BinHz) {
    return choice_names("exact", "torchaudio", "speechbrain", "lhotse");
  }
  enum class Triangles { hz, mel, left_width };
  friend constexpr auto names(Triangles) { return choice_names("hz", "mel", "left_width"); }
  // kaldi: its option htk-mode (mel-computations.cc); htk: HTK's own rule (mel_filterbank.cpp).
  enum class HtkMode { off, kaldi, htk };
  friend constexpr auto names(HtkMode) { return choice_names("false", "kaldi", "htk"); }
  // db: the factor is 20/power, so 10*log10 for power 2 and 20*log10 for power 1; a level in
  // decibels is then the same for both. ln and log10: natural factors. piecewise:
  // x/e up to e, ln(x)/e up to e^e, then ln(x), as torchaudio's pipelines for RNN-T assign first
  // one of two pieces, then the other.
  enum class Log { none, ln, log10, db, piecewise };
  friend constexpr auto names(Log) {
    return choice_names("none", "ln", "log10", "db", "piecewise");
  }
  enum class Normalize { none, fixed, per_feature, all_features };
  friend constexpr auto names(Normalize) {
    return choice_names("none", "fixed", "per_feature", "all_features");
  }
  // (x - mean) / (std + eps), or (x - mean) / sqrt(std^2 + eps)
  enum class NormEpsTo { std, variance };
  friend constexpr auto names(NormEpsTo) { return choice_names("std", "variance"); }
  enum class Precision { float32, float64 };
  friend constexpr auto names(Precision) { return choice_names("float", "double"); }

  // The value that a logarithm maps to 0: a constant, or the largest of the utterance.
  struct Reference {
    double value = 1.0;
    bool is_max = false;
    friend bool operator==(const Reference&, const Reference&) = default;
  };

  // Numbers, and the .npy file that they were read from; "" if they were written out.
  struct WindowValues {
    std::vector<double> numbers;
    std::string file;
    friend bool operator==(const WindowValues&, const WindowValues&) = default;
  };

  // A matrix [rows][columns], and the .npy file that it was read from; "" if it was written out.
  struct Filters {
    std::vector<double> numbers;
    int rows = 0, columns = 0;
    std::string file;
    friend bool operator==(const Filters&, const Filters&) = default;
  };

  int sample_rate = 16000;

  // Conditioning. Full scale is 1 before input_scale.
  double input_scale = 1.0;
  double dither = 0.0;
  std::int64_t dither_seed = 0;
  double preemphasis = 0.0;  // k of x[t] - k x[t-1]; of a frame's first sample: x[0] - k x[0]
  PreemphasisOf preemphasis_of = PreemphasisOf::signal;
  PreemphasisFirst preemphasis_first = PreemphasisFirst::keep;
  bool remove_dc = false;

  // Framing.
  int n_fft = 400;
  std::optional<int> win_length;  // default n_fft
  std::optional<int> hop;         // default win_length / 2
  Align align = Align::center;
  Window window = Window::hann;
  bool periodic = true;
  WindowValues window_values;
  double hamming_alpha = kHammingAlpha;
  double blackman_coeff = kBlackmanCoeff;
  double tukey_alpha = 0.5;
  double kaiser_beta = 14.0;
  std::optional<double> gauss_std;  // default win_length / 8
  bool center = true;
  std::optional<int> pad;  // default half a frame when centred, else 0
  PadMode pad_mode = PadMode::reflect;
  // Between the utterance and its padding; pad of torchaudio.transforms.Spectrogram.
  int pad_zeros = 0;
  // true is the same as center: false. false: frame t is centred at (t + 1/2) hop, and there are (n
  // + hop/2) / hop frames. Not set: center decides.
  std::optional<bool> snip_edges;
  bool drop_last = false;
  // Drops the last frame where it ends with the last sample, or with the last one of the padding.
  bool drop_exact = false;
  PartialFrames partial_frames = PartialFrames::none;

  // Spectrum.
  Normalized normalized = Normalized::none;
  double power = 2.0;
  double power_offset = 0.0;
  double power_floor = 0.0;
  std::optional<double> power_ceiling;
  Output output = Output::mel;

  // Filterbank.
  int n_mels = 128;
  double fmin = 0.0;
  std::optional<double> fmax;      // 0 or less: relative to filter_rate / 2, the default
  std::optional<int> filter_rate;  // default sample_rate
  Filters filters;                 // instead of all triangles: [n_mels][n_bins], or transposed
  BinHz bin_hz = BinHz::exact;
  MelScale mel_scale = MelScale::htk;
  MelNorm mel_norm = MelNorm::none;
  Triangles triangles = Triangles::hz;
  HtkMode htk_mode = HtkMode::off;
  double vtln_warp = 1.0;
  double vtln_low = 100.0;
  double vtln_high = -500.0;

  // Energy: one more column with the natural logarithm of a frame's sum of squares.
  bool use_energy = false;
  bool raw_energy = true;
  // ln(max(sum of squares, energy_eps, energy_floor)): Kaldi's FbankComputer::Compute with its
  // epsilon. Lhotse's _get_log_energy adds 1e-15 instead, which yields 1e-15 for a sum of 0.
  double energy_eps = kEnergyEpsilon;
  double energy_floor = 0.0;
  bool htk_compat = false;

  // Logarithm. amin and ref are compared with the value itself: a power for power 2, an amplitude
  // for power 1 (as librosa.amplitude_to_db and torchaudio's stype='magnitude' do).
  Log log = Log::none;
  double amin = 1e-10;
  Reference ref;
  std::optional<double> top_db;
  // The factor of log10 for decibels; default 20 / power. 10 corresponds to librosa.power_to_db and
  // to torchaudio.functional.amplitude_to_DB with multiplier 10, whatever their input.
  std::optional<double> db_factor;
  double log_offset = 0.0;

  // (x - mean) / (std + norm_eps); norm_ddof: how much less than their number the divisor of a sum
  // of squares is
  Normalize normalize = Normalize::none;
  std::vector<double> norm_mean;
  std::vector<double> norm_std;  // empty: 1
  bool norm_variance = true;
  double norm_eps = 1e-5;
  NormEpsTo norm_eps_to = NormEpsTo::std;
  int norm_ddof = 1;

  Precision precision = Precision::float32;

  // A pointer to any of the members.
  template <class... Types>
  using MemberOf = std::variant<Types MelOptions::*...>;
  using Member =
      MemberOf<bool, int, std::int64_t, double, std::optional<bool>, std::optional<int>,
               std::optional<double>, std::vector<double>, Reference, WindowValues, Filters, Window,
               Align, PadMode, PreemphasisOf, PreemphasisFirst, PartialFrames, Normalized, Output,
               MelScale, MelNorm, Triangles, BinHz, HtkMode, Log, Normalize, NormEpsTo, Precision>;

  friend bool operator==(const MelOptions&, const MelOptions&) = default;
};

using MelOptionProblem = OptionProblem;

// Returns every problem of the options; empty if a MelPlan can be made of them.
std::vector<MelOptionProblem> check(const MelOptions& options);

// Fills in derived defaults: win_length, hop, pad, filter_rate, fmax and vtln_high [Hz], gauss_std;
// the ends if snip_edges decides them. Requires check(options) to be empty.
MelOptions resolve(const MelOptions& options);

// The form that an output records: resolve(options), further unified for options that yield the
// same rows. A floor is as high as its effect, a list of equal numbers is one number, and a
// deviation that is not used is 1. Requires check(options) to be empty.
MelOptions canonical(const MelOptions& options);

// The sample rate that the filters are made for.
inline int filter_rate(const MelOptions& o) { return o.filter_rate.value_or(o.sample_rate); }

// The samples at the start of an utterance that pre-emphasis leaves out: 0 or 1.
inline int dropped_samples(const MelOptions& o) {
  return o.preemphasis > 0 && o.preemphasis_of == MelOptions::PreemphasisOf::signal &&
                 o.preemphasis_first == MelOptions::PreemphasisFirst::drop
             ? 1
             : 0;
}

// Whether a band or bin becomes factor * log(...): MelPlan's log_factor() and log_shift().
inline bool has_plain_log(const MelOptions& o) {
  return o.log != MelOptions::Log::none && o.log != MelOptions::Log::piecewise;
}

// The lower limit of a band before its level; 0: none. HTK's assumes samples in the range of int16.
double band_floor(const MelOptions& options);

// What the values are, such as "ln power, normalized" or "dB".
std::string unit_of(const MelOptions& options);

// The number of values of a frame: bands or bins, and the energy.
int columns(const MelOptions& options);

}  // namespace melflow
