#include "stages/features/mel/double_row.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

namespace melflow {

DoubleRow::DoubleRow(const MelPlan& plan)
    : options_(plan.options()),
      frame_length_(plan.frame_length()),
      n_bins_(plan.n_bins()),
      window_(plan.window_double().begin(), plan.window_double().end()),
      floor_(band_floor(options_)),
      factor_(plan.log_factor()),
      shift_(plan.log_shift()),
      conditioner_(plan),
      fft_(plan.n_fft()) {
  if (options_.output == MelOptions::Output::mel) bank_ = make_filterbank(options_);
}

DoubleRow::Scratch DoubleRow::make_scratch() const {
  Scratch scratch;
  scratch.frame = AlignedArray<double>(static_cast<std::size_t>(options_.n_fft));
  scratch.spectrum = AlignedArray<double>(2 * static_cast<std::size_t>(n_bins_));
  scratch.work = AlignedArray<double>(static_cast<std::size_t>(frame_length_));
  scratch.of_fft = fft_.make_work();
  return scratch;
}

// Returns the level of a band; NaN stays NaN.
double DoubleRow::level(double value) const {
  if (floor_ > 0.0 && value < floor_) value = floor_;
  if (options_.log == MelOptions::Log::none) return value;
  if (options_.log == MelOptions::Log::piecewise) {
    constexpr double e = std::numbers::e;
    const double log = std::log(value);
    return !(value > e) ? value / e : log <= e ? log / e : log;
  }
  value += options_.log_offset;
  return factor_ * std::log(value < options_.amin ? options_.amin : value) - shift_;
}

template <class Sample>
double DoubleRow::compute(const SignalView<Sample>& view, std::int64_t start, Scratch& scratch,
                          float* out) const {
  double* const frame = scratch.frame.data();
  double energy = conditioner_.frame(view, start, scratch.work.data(), frame);
  for (int i = 0; i < frame_length_; ++i) frame[i] *= window_[static_cast<std::size_t>(i)];
  if (options_.use_energy && !options_.raw_energy)
    energy = std::inner_product(frame, frame + frame_length_, frame, 0.0);
  // FFTW overwrites its input, so the zeros are rewritten for each frame.
  std::fill(frame + frame_length_, frame + options_.n_fft, 0.0);
  double* const power = scratch.spectrum.data();
  fft_.execute(frame, power, scratch.of_fft);
  for (int k = 0; k < n_bins_; ++k) {
    const double re = power[2 * k], im = power[2 * k + 1];
    power[k] = re * re + im * im + options_.power_offset;
    if (power[k] < options_.power_floor) power[k] = options_.power_floor;
    if (options_.power_ceiling && power[k] > *options_.power_ceiling)
      power[k] = *options_.power_ceiling;
    if (options_.power == 1.0)
      power[k] = std::sqrt(power[k]);
    else if (options_.power != 2.0)
      power[k] = std::pow(power[k], options_.power / 2.0);
  }
  if (options_.output == MelOptions::Output::spectrogram) {
    for (int k = 0; k < n_bins_; ++k) out[k] = static_cast<float>(level(power[k]));
    return energy;
  }
  const double* weights = bank_.weights.data();
  for (const MelBand& band : bank_.bands) {
    const double sum =
        std::inner_product(weights, weights + band.count, power + band.first_bin, 0.0);
    *out++ = static_cast<float>(level(sum));
    weights += band.count;
  }
  return energy;
}

template double DoubleRow::compute(const SignalView<std::int16_t>&, std::int64_t, Scratch&,
                                   float*) const;
template double DoubleRow::compute(const SignalView<float>&, std::int64_t, Scratch&, float*) const;

}  // namespace melflow
