// mel_plan.cpp - option checks, windows, mel scales, triangles and frame counts.
//
// Everything is computed in double and rounded to float once, at the end.

#include "stages/mel_plan.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <sstream>
#include <stdexcept>

namespace melflow {
namespace {

constexpr int max_n_fft = 1 << 20;   // a frame of a minute at 16 kHz; keeps every index in int
constexpr int max_n_mels = 1 << 16;  // far beyond any use; bounds the tables

// Mel scales: HTK book, 5.6 (2595 log10(1 + f/700)); Slaney, Auditory Toolbox 1998: linear below
// 1 kHz (200/3 Hz a mel), logarithmic above with 27 steps from 1 to 6.4 kHz.
constexpr double slaney_hz_per_mel = 200.0 / 3.0;
constexpr double slaney_break_hz = 1000.0;
constexpr double slaney_break_mel = slaney_break_hz / slaney_hz_per_mel;
const double slaney_log_step = std::log(6.4) / 27.0;

double hz_to_mel(double hz, MelOptions::MelScale scale) {
  if (scale == MelOptions::MelScale::htk) return 2595.0 * std::log10(1.0 + hz / 700.0);
  if (hz < slaney_break_hz) return hz / slaney_hz_per_mel;
  return slaney_break_mel + std::log(hz / slaney_break_hz) / slaney_log_step;
}

double mel_to_hz(double mel, MelOptions::MelScale scale) {
  if (scale == MelOptions::MelScale::htk) return 700.0 * (std::pow(10.0, mel / 2595.0) - 1.0);
  if (mel < slaney_break_mel) return mel * slaney_hz_per_mel;
  return slaney_break_hz * std::exp(slaney_log_step * (mel - slaney_break_mel));
}

double window_value(MelOptions::Window window, double phase) {
  switch (window) {
    case MelOptions::Window::hann:
      return 0.5 - 0.5 * std::cos(phase);
    case MelOptions::Window::hamming:
      return 0.54 - 0.46 * std::cos(phase);
    case MelOptions::Window::blackman:
      return 0.42 - 0.5 * std::cos(phase) + 0.08 * std::cos(2.0 * phase);
    case MelOptions::Window::boxcar:
      break;
  }
  return 1.0;
}

// win_length values in the middle of n_fft, where librosa and torch put them.
std::vector<double> make_window(const MelOptions& options) {
  const int length = *options.win_length;
  const int left = (options.n_fft - length) / 2;
  const int period = options.periodic ? length : std::max(length - 1, 1);
  std::vector<double> window(options.n_fft, 0.0);
  double energy = 0.0;
  for (int i = 0; i < length; ++i) {
    const double phase = 2.0 * std::numbers::pi * i / period;
    const double value = length == 1 ? 1.0 : window_value(options.window, phase);
    window[left + i] = value;
    energy += value * value;
  }
  double scale = 1.0;
  if (options.normalized == MelOptions::Normalized::window) scale = 1.0 / std::sqrt(energy);
  if (options.normalized == MelOptions::Normalized::frame_length) {
    scale = 1.0 / std::sqrt(static_cast<double>(options.n_fft));
  }
  for (double& value : window) value *= scale;
  return window;
}

// False for NaN.
bool within(double value, double low, double high) { return value >= low && value <= high; }

}  // namespace

std::vector<MelOptionProblem> check(const MelOptions& o) {
  std::vector<MelOptionProblem> problems;
  const auto require = [&problems](bool ok, const char* option, auto value, auto... allowed) {
    if (ok) return;
    std::ostringstream text;
    text << option << " is " << value << ", must be ";
    (text << ... << allowed);
    problems.push_back({option, text.str()});
  };
  constexpr double huge = std::numeric_limits<float>::max();
  constexpr double smallest = std::numeric_limits<float>::min();
  const double nyquist = o.sample_rate / 2.0;

  require(o.sample_rate >= 1, "sample_rate", o.sample_rate, "at least 1 Hz");
  require(o.n_fft >= 2 && o.n_fft <= max_n_fft, "n_fft", o.n_fft, "from 2 to ", max_n_fft,
          " samples");
  if (o.win_length) {
    require(*o.win_length >= 1 && *o.win_length <= o.n_fft, "win_length", *o.win_length,
            "from 1 to n_fft (", o.n_fft, ") samples");
  }
  // Both values of the two-sample window are its zero ends.
  const bool zero_ends = !o.periodic && (o.window == MelOptions::Window::hann ||
                                         o.window == MelOptions::Window::blackman);
  require(!zero_ends || o.win_length.value_or(o.n_fft) != 2, "win_length", 2,
          "other than 2 for a symmetric hann or blackman window, which would be all zeros");
  if (o.hop) require(*o.hop >= 1, "hop", *o.hop, "at least 1 sample");
  require(o.power > 0.0 && o.power <= 16.0, "power", o.power, "above 0 and at most 16");
  require(o.n_mels >= 1 && o.n_mels <= max_n_mels, "n_mels", o.n_mels, "from 1 to ", max_n_mels);

  const double fmax = o.fmax.value_or(nyquist);
  if (o.fmax && o.sample_rate >= 1) {
    require(fmax > 0.0 && fmax <= nyquist, "fmax", fmax, "above 0 and at most sample_rate / 2 (",
            nyquist, " Hz)");
  }
  if (fmax > 0.0) {
    require(o.fmin >= 0.0 && o.fmin < fmax, "fmin", o.fmin, "from 0 to below fmax (", fmax, " Hz)");
  }

  const bool log = o.log != MelOptions::Log::none;
  // Below the smallest normal float the fast logarithm would not see the floor.
  require(!log || within(o.amin, smallest, huge), "amin", o.amin, "from ", smallest, " to ", huge,
          " when log is not none");
  require(within(o.ref, smallest, huge), "ref", o.ref, "from ", smallest, " to ", huge);
  require(log || o.ref == 1.0, "ref", o.ref, "1 when log is none");
  require(!o.ref_max || o.ref == 1.0, "ref", o.ref, "1 when ref_max is true");
  require(log || !o.ref_max, "ref_max", "true", "false when log is none");
  require(within(o.log_offset, 0.0, huge), "log_offset", o.log_offset, "from 0 to ", huge);
  require(log || o.log_offset == 0.0, "log_offset", o.log_offset, "0 when log is none");
  if (o.top_db) {
    require(within(*o.top_db, 0.0, huge), "top_db", *o.top_db, "from 0 to ", huge, " dB");
    require(o.log == MelOptions::Log::db, "top_db", *o.top_db, "absent when log is not db");
  }
  return problems;
}

MelPlan::MelPlan(const MelOptions& options) : options_(options) {
  const std::vector<MelOptionProblem> problems = check(options);
  if (!problems.empty()) {
    std::string text;
    for (const MelOptionProblem& problem : problems) {
      if (!text.empty()) text += '\n';
      text += problem.message;
    }
    throw std::invalid_argument(text);
  }
  options_.win_length = options.win_length.value_or(options.n_fft);
  options_.hop = options.hop.value_or(std::max(*options_.win_length / 2, 1));
  options_.fmax = options.fmax.value_or(options.sample_rate / 2.0);

  window_double_ = make_window(options_);
  window_.assign(window_double_.begin(), window_double_.end());
  make_bands();

  if (options_.log == MelOptions::Log::log10) log_factor_ = 1.0 / std::numbers::ln10;
  if (options_.log == MelOptions::Log::db) {
    log_factor_ = 20.0 / options_.power / std::numbers::ln10;
  }
  log_shift_ = log_factor_ * std::log(std::max(options_.amin, options_.ref));
}

// Triangles with straight sides in Hz, corners equally spaced in mel.
void MelPlan::make_bands() {
  const MelOptions& o = options_;
  const double mel_low = hz_to_mel(o.fmin, o.mel_scale);
  const double mel_high = hz_to_mel(*o.fmax, o.mel_scale);
  const auto corner_hz = [&](int i) {
    return mel_to_hz(mel_low + (mel_high - mel_low) * i / (o.n_mels + 1), o.mel_scale);
  };
  const double bin_hz = static_cast<double>(o.sample_rate) / o.n_fft;
  // Below this a weight is the rounding error of a bin that sits on a corner.
  constexpr double rounding = 1e-12;

  for (int m = 0; m < o.n_mels; ++m) {
    const double left = corner_hz(m);
    const double centre = corner_hz(m + 1);
    const double right = corner_hz(m + 2);
    const double scale = o.mel_norm == MelOptions::MelNorm::slaney ? 2.0 / (right - left) : 1.0;
    MelBand band;
    band.centre_hz = centre;
    band.offset = static_cast<int>(weights_.size());
    const int first = std::max(0, static_cast<int>(std::floor(left / bin_hz)));
    const int last = std::min(n_bins() - 1, static_cast<int>(std::ceil(right / bin_hz)));
    for (int k = first; k <= last; ++k) {
      const double hz = k * bin_hz;
      const double weight =
          std::min((hz - left) / (centre - left), (right - hz) / (right - centre));
      if (!(weight > rounding)) continue;
      if (band.count == 0) band.first_bin = k;
      ++band.count;
      weights_.push_back(static_cast<float>(weight * scale));
    }
    empty_bands_ += band.count == 0 ? 1 : 0;
    bands_.push_back(band);
  }
}

std::vector<float> MelPlan::band_weights_dense() const {
  std::vector<float> dense(static_cast<std::size_t>(n_mels()) * n_bins(), 0.0F);
  for (std::size_t m = 0; m < bands_.size(); ++m) {
    const MelBand& band = bands_[m];
    std::copy_n(weights_.begin() + band.offset, band.count,
                dense.begin() + static_cast<std::ptrdiff_t>(m * n_bins() + band.first_bin));
  }
  return dense;
}

std::int64_t MelPlan::frames(std::int64_t n_samples) const {
  const std::int64_t padded = n_samples + 2 * static_cast<std::int64_t>(pad());
  if (n_samples <= 0 || padded < n_fft()) return 0;
  return 1 + (padded - n_fft()) / hop();
}

std::int64_t MelPlan::frames_ready(std::int64_t n_seen) const {
  const std::int64_t right_extent = n_fft() - pad();  // of frame 0
  // Reflection at the left end: sample -P is sample P.
  const bool reflects = options_.center && options_.pad_mode == MelOptions::PadMode::reflect;
  const std::int64_t needed =
      reflects ? std::max<std::int64_t>(right_extent, pad() + 1) : right_extent;
  return n_seen < needed ? 0 : 1 + (n_seen - right_extent) / hop();
}

std::int64_t MelPlan::context() const {
  // The first frame that is not ready starts after n_seen - n_fft; reflection at the right end of
  // a unit of N >= n_seen samples goes back to sample N - 1 - P.
  return std::max<std::int64_t>(n_fft() - 1, pad() + 1);
}

}  // namespace melflow
