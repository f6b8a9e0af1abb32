#include "stages/device/kernel_front_end.h"

#include <cmath>

#include "stages/features/mel/mel_signal.h"

namespace melflow {
namespace {

cuda::Settings settings_of(const MelPlan& plan) {
  const MelOptions& options = plan.options();
  cuda::Settings s;
  s.n_fft = plan.n_fft();
  s.frame_length = plan.frame_length();
  s.n_bins = plan.n_bins();
  s.columns = plan.columns();
  s.levels_at = plan.energy_column() == 0 ? 1 : 0;
  s.is_mel = options.output == MelOptions::Output::mel;
  s.n_levels = s.is_mel ? plan.n_mels() : plan.n_bins();
  s.power_offset = static_cast<float>(options.power_offset);
  if (options.power != 2.0)
    s.power = options.power == 1.0 ? cuda::PowerKind::magnitude : cuda::PowerKind::other;
  s.exponent = static_cast<float>(options.power / 2.0);
  s.power_floor = static_cast<float>(options.power_floor);
  if (options.power_ceiling) s.power_ceiling = static_cast<float>(*options.power_ceiling);
  s.has_exponent = s.power != cuda::PowerKind::square || s.power_offset > 0.0F ||
                   s.power_floor > 0.0F || options.power_ceiling;
  s.floor = static_cast<float>(band_floor(options));
  s.piecewise = options.log == MelOptions::Log::piecewise;
  s.log = has_plain_log(options);
  s.amin = static_cast<float>(options.amin);
  s.offset = static_cast<float>(options.log_offset);
  s.factor = static_cast<float>(plan.log_factor());
  s.shift = static_cast<float>(plan.log_shift());
  return s;
}

cuda::ConditionSettings condition_of(const MelPlan& plan) {
  constexpr int alignment = 8;
  const MelOptions& options = plan.options();
  cuda::ConditionSettings s;
  s.frame_length = plan.frame_length();
  s.begin = plan.window_begin();
  s.end = s.begin + plan.window_length();
  s.stride = (s.frame_length + alignment - 1) / alignment * alignment;
  s.scale_float = static_cast<float>(options.input_scale);
  s.scale_int16 = s.scale_float * kInt16Scale;
  s.remove_dc = options.remove_dc;
  s.preemphasis = static_cast<float>(options.preemphasis);
  return s;
}

}  // namespace

cuda::FrontEnd kernel_front_end(const MelPlan& plan) {
  const double input_scale = plan.options().input_scale;
  cuda::FrontEnd out;
  out.settings = settings_of(plan);
  out.window.assign(plan.window().begin(), plan.window().end());
  out.scale_float = takes_plain_samples(plan) ? static_cast<float>(input_scale) : 1.0F;
  out.scale_int16 = out.scale_float * kInt16Scale;
  double sum = 0.0;
  for (const double w : plan.window_double()) sum += std::abs(w);
  out.largest_sum = sum * input_scale;
  if (is_conditioned_by_frame(plan)) out.condition = condition_of(plan);
  out.takes_int16 = takes_plain_samples(plan) || out.condition;
  if (out.settings.is_mel) {
    for (const MelBand& band : plan.bands())
      out.bands.push_back({band.first_bin, band.count, band.offset});
    out.weights.assign(plan.weights().begin(), plan.weights().end());
  }
  return out;
}

}  // namespace melflow
