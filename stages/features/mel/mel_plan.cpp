// Everything is computed in double and rounded to float once, at the end.

#include "stages/features/mel/mel_plan.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <stdexcept>
#include <string>

namespace melflow {
namespace {

using Window = MelOptions::Window;
using Align = MelOptions::Align;
using PadMode = MelOptions::PadMode;

// x runs from 0 to 1 over the window's period.
double window_value(const MelOptions& o, double x, double period) {
  const double phase = 2.0 * std::numbers::pi * x;
  switch (o.window) {
    case Window::hann:
      return 0.5 - 0.5 * std::cos(phase);
    case Window::hamming: {
      // 1 - 0.54 is not quite 0.46.
      const double rest = o.hamming_alpha == kHammingAlpha ? 0.46 : 1.0 - o.hamming_alpha;
      return o.hamming_alpha - rest * std::cos(phase);
    }
    case Window::blackman: {
      const double rest = o.blackman_coeff == kBlackmanCoeff ? 0.08 : 0.5 - o.blackman_coeff;
      return o.blackman_coeff - 0.5 * std::cos(phase) + rest * std::cos(2.0 * phase);
    }
    case Window::blackman_harris:
      return 0.35875 - 0.48829 * std::cos(phase) + 0.14128 * std::cos(2.0 * phase) -
             0.01168 * std::cos(3.0 * phase);
    case Window::nuttall:
      return 0.3635819 - 0.4891775 * std::cos(phase) + 0.1365995 * std::cos(2.0 * phase) -
             0.0106411 * std::cos(3.0 * phase);
    case Window::kaiser: {
      const double from_middle = 2.0 * x - 1.0;
      const double inside = std::sqrt(std::max(0.0, 1.0 - from_middle * from_middle));
      return std::cyl_bessel_i(0.0, o.kaiser_beta * inside) / std::cyl_bessel_i(0.0, o.kaiser_beta);
    }
    case Window::gauss: {
      const double from_middle = (x - 0.5) * period / *o.gauss_std;
      return std::exp(-0.5 * from_middle * from_middle);
    }
    case Window::bartlett:
      return 1.0 - std::abs(2.0 * x - 1.0);
    case Window::cosine:
      return std::sin(std::numbers::pi * (x * period + 0.5) / (period + 1.0));
    case Window::sine:
      return std::sin(0.5 * phase);
    case Window::tukey: {
      const double from_end = std::min(x, 1.0 - x);
      if (2.0 * from_end >= o.tukey_alpha) return 1.0;
      return 0.5 - 0.5 * std::cos(2.0 * std::numbers::pi * from_end / o.tukey_alpha);
    }
    case Window::povey:
      return std::pow(0.5 - 0.5 * std::cos(phase), 0.85);
    case Window::boxcar:
    case Window::values:
      break;
  }
  return 1.0;
}

// [win_length], without any normalisation. With p = win_length where the window is periodic, else
// win_length - 1, and x = i / p for value i:
//   hann, povey         h = 1/2 - 1/2 cos(2 pi x); h^0.85 (Kaldi's feature-window.cc)
//   hamming             a - (1 - a) cos(2 pi x), a = hamming_alpha (scipy general_hamming,
//                       torch.hamming_window)
//   blackman            c - 1/2 cos(2 pi x) + (1/2 - c) cos(4 pi x), c = blackman_coeff (Kaldi's
//                       blackman_coeff; 0.42 in scipy and torch)
//   blackman_harris     four terms (Harris 1978; scipy blackmanharris)
//   nuttall             four terms, 0.3635819, 0.4891775, 0.1365995, 0.0106411 (scipy nuttall)
//   kaiser, gauss       scipy kaiser with kaiser_beta; scipy gaussian with gauss_std
//   bartlett            1 - |2 x - 1| (scipy bartlett, torch.bartlett_window)
//   cosine              sin(pi (i + 1/2) / (p + 1)) (scipy cosine)
//   sine                sin(pi x) (Kaldi)
//   tukey               1/2 - 1/2 cos(2 pi d / a) where d = min(x, 1 - x) < a / 2, else 1;
//                       a = tukey_alpha (scipy tukey)
//   values              window_values
// A window of one sample is 1, unless window_values gives it.
std::vector<double> make_window(const MelOptions& o) {
  if (o.window == MelOptions::Window::values) return o.window_values.numbers;
  const int length = *o.win_length;
  if (length == 1) return {1.0};
  const double period = o.periodic ? length : length - 1;
  std::vector<double> window;
  window.reserve(static_cast<std::size_t>(length));
  for (int i = 0; i < length; ++i) window.push_back(window_value(o, i / period, period));
  return window;
}

}  // namespace

MelPlan::MelPlan(const MelOptions& options) {
  const std::vector<MelOptionProblem> problems = check(options);
  if (!problems.empty()) {
    std::string text;
    for (const MelOptionProblem& problem : problems) {
      if (!text.empty()) text += '\n';
      text += problem.message;
    }
    throw std::invalid_argument(text);
  }
  options_ = resolve(options);
  columns_ = melflow::columns(options_);

  const bool left = options_.align == Align::left;
  frame_length_ = left ? window_length() : n_fft();
  window_begin_ = left ? 0 : (n_fft() - window_length()) / 2;
  // Kaldi's centre of frame t is t * hop + hop / 2.
  dropped_ = dropped_samples(options_);
  lead_ = options_.snip_edges ? frame_length_ / 2 - hop() / 2 : *options_.pad + options_.pad_zeros;

  const std::vector<double> shape = make_window(options_);
  double scale = 1.0;
  if (options_.normalized == MelOptions::Normalized::window) {
    double energy = 0.0;
    for (const double value : shape) energy += value * value;
    scale = 1.0 / std::sqrt(energy);
  }
  if (options_.normalized == MelOptions::Normalized::frame_length) {
    scale = 1.0 / std::sqrt(static_cast<double>(n_fft()));
  }
  window_double_.assign(static_cast<std::size_t>(frame_length_), 0.0);
  std::transform(shape.begin(), shape.end(), window_double_.begin() + window_begin_,
                 [scale](double value) { return value * scale; });
  window_.assign(window_double_.begin(), window_double_.end());
  if (options_.output == MelOptions::Output::mel) make_bands();

  if (options_.log == MelOptions::Log::log10) log_factor_ = 1.0 / std::numbers::ln10;
  if (options_.log == MelOptions::Log::db) {
    log_factor_ = options_.db_factor.value_or(20.0 / options_.power) / std::numbers::ln10;
  }
  log_shift_ = log_factor_ * std::log(std::max(options_.amin, options_.ref.value));
}

void MelPlan::make_bands() {
  Filterbank bank = make_filterbank(options_);
  bands_ = std::move(bank.bands);
  weights_.assign(bank.weights.begin(), bank.weights.end());
  empty_bands_ = static_cast<int>(
      std::count_if(bands_.begin(), bands_.end(), [](const MelBand& b) { return b.count == 0; }));
}

int MelPlan::energy_column() const {
  if (!options_.use_energy) return -1;
  return options_.htk_compat ? columns_ - 1 : 0;
}

std::vector<double> MelPlan::column_hz() const {
  std::vector<double> hz;
  if (options_.output == MelOptions::Output::mel) {
    // A triangle of another rate is at another frequency.
    const bool is_given = !options_.filters.numbers.empty();
    const double factor =
        is_given ? 1.0 : static_cast<double>(options_.sample_rate) / filter_rate(options_);
    for (const MelBand& band : bands_) hz.push_back(band.centre_hz * factor);
  } else {
    const double bin_hz = static_cast<double>(options_.sample_rate) / n_fft();
    for (int k = 0; k < n_bins(); ++k) hz.push_back(k * bin_hz);
  }
  if (options_.use_energy)
    hz.insert(hz.begin() + energy_column(), std::numeric_limits<double>::quiet_NaN());
  return hz;
}

std::int64_t MelPlan::frames(std::int64_t n_samples) const {
  n_samples -= dropped_;
  if (n_samples <= 0) return 0;
  std::int64_t count = 0;
  if (options_.snip_edges) {
    count = (n_samples + hop() / 2) / hop();
  } else {
    const std::int64_t padded = n_samples + 2 * lead_, behind = padded - frame_length_;
    if (options_.partial_frames == MelOptions::PartialFrames::all)
      count = (padded + hop() - 1) / hop();
    else if (options_.partial_frames == MelOptions::PartialFrames::last)
      count = behind <= 0 ? 1 : 1 + (behind + hop() - 1) / hop();
    else
      count = behind < 0 ? 0 : 1 + behind / hop();
    if (options_.drop_exact && !options_.drop_last && count > 0 && behind % hop() == 0) --count;
  }
  return options_.drop_last ? std::max<std::int64_t>(count - 1, 0) : count;
}

std::int64_t MelPlan::frames_ready(std::int64_t n_seen) const {
  const std::int64_t right_extent = frame_length_ - lead_ + dropped_;  // of frame 0
  // Reflection at the left end: sample -P is sample P, or P - 1 if the end is repeated. Zeros on
  // either side reduce the samples needed.
  const std::int64_t reflected = lead_ - 2 * std::int64_t{options_.pad_zeros} + dropped_;
  std::int64_t needed = right_extent;
  if (lead_ > 0 && options_.pad_mode == PadMode::reflect) needed = std::max(needed, reflected + 1);
  if (lead_ > 0 && options_.pad_mode == PadMode::symmetric) needed = std::max(needed, reflected);
  // The first sample may need the second one.
  const bool is_plain = options_.preemphasis_first == MelOptions::PreemphasisFirst::keep;
  if (n_seen < std::max<std::int64_t>(needed, is_plain ? 1 : 2)) return 0;
  return std::clamp<std::int64_t>(1 + (n_seen - right_extent) / hop(), 0, frames(n_seen));
}

std::int64_t MelPlan::context() const {
  // The first frame that is not ready starts after n_seen - frame, or a hop earlier if it is
  // withheld because it may be the last. Reflection at the right end of an utterance of N >= n_seen
  // samples reaches back to sample N - 1 - P, where P is at most the part of the last frame outside
  // the utterance.
  const std::int64_t held = options_.drop_last || options_.drop_exact ? hop() : 0;
  const std::int64_t outside = std::max<std::int64_t>(lead_, frame_length_ - lead_) + 1;
  const std::int64_t before =
      options_.preemphasis > 0 && options_.preemphasis_of == MelOptions::PreemphasisOf::signal ? 1
                                                                                               : 0;
  return std::max<std::int64_t>(frame_length_ - 1 + held, outside) + before;
}

}  // namespace melflow
