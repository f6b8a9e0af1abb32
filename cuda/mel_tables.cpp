// Everything is computed in double and rounded to float once, as in MelPlan.

#include "cuda/mel_tables.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <numbers>
#include <stdexcept>
#include <string>

#include "cuda/fused_shape.h"
#include "mel/mel_signal.h"

namespace melflow::cuda {
namespace {

Complex turned(double turns) {
  const double angle = -2.0 * std::numbers::pi * turns;
  return {static_cast<float>(std::cos(angle)), static_cast<float>(std::sin(angle))};
}

// float16 ends at 65504: a power of two that keeps every sum of a frame's samples at full scale
// below 32768. What is stored lacks the sums of the last pass, so that pre-emphasis and floats
// beyond 1 have room as well; the small ones stay far above the type's smallest.
float operand_scale(const MelPlan& plan) {
  double largest = 0.0;
  for (const double w : plan.window_double()) largest += std::abs(w);
  largest *= 0.5 * plan.options().input_scale;
  return static_cast<float>(std::exp2(std::floor(std::log2(32768.0 / largest))));
}

// Value k of every lane side by side; of(lane, k) is null where a lane has none.
template <class Of>
std::vector<Complex> by_lane(int count, int lanes, const Of& of) {
  std::vector<Complex> table;
  for (int k = 0; k < count; ++k)
    for (int lane = 0; lane < lanes; ++lane) table.push_back(of(lane, k));
  return table;
}

template <class S>
std::vector<Complex> window_by_lane(const std::vector<float>& window) {
  const auto at = [&window](int i) {
    return i < static_cast<int>(window.size()) ? window[static_cast<std::size_t>(i)] : 0.0F;
  };
  return by_lane(S::first_per_lane * S::r1, S::lanes, [&](int lane, int k) -> Complex {
    const int j = lane + S::lanes * (k / S::r1);
    const int point = j + S::per_section * (k % S::r1);
    return j < S::per_section ? Complex{at(2 * point), at(2 * point + 1)} : Complex{0.0F, 0.0F};
  });
}

template <class S>
void make_twiddles(FusedTables& tables) {
  constexpr double n = S::points;
  tables.first = by_lane(S::first_per_lane * (S::r1 - 1), S::lanes, [](int lane, int k) {
    const int j = lane + S::lanes * (k / (S::r1 - 1));
    return turned(j * (k % (S::r1 - 1) + 1) / n);
  });
  tables.middle = by_lane(S::middle_twiddles * (S::r2 - 1), S::lanes, [](int lane, int k) {
    const int r = (lane + S::lanes * (k / (S::r2 - 1))) % S::r3;
    return turned(r * (k % (S::r2 - 1) + 1) / static_cast<double>(S::per_section));
  });
  tables.turn = by_lane(S::tasks_per_lane * S::r3, S::lanes, [](int lane, int k) {
    const int task = lane + S::lanes * (k / S::r3);
    return turned(S::bin_of_pair(task, k % S::r3) / (2.0 * n) + 0.25);
  });
}

template <class S>
void fill(FusedTables& tables, const MelPlan& plan, float factor) {
  tables.lanes = S::lanes;
  tables.exchanged = S::exchanged;
  tables.window_int16 = window_by_lane<S>(scaled_window(plan, SampleType::int16, factor));
  tables.window_float = window_by_lane<S>(scaled_window(plan, SampleType::float32, factor));
  make_twiddles<S>(tables);
}

}  // namespace

Settings make_settings(const MelPlan& plan) {
  const MelOptions& options = plan.options();
  Settings s;
  s.n_fft = plan.n_fft();
  s.frame_length = plan.frame_length();
  s.n_bins = plan.n_bins();
  s.columns = plan.columns();
  s.levels_at = plan.energy_column() == 0 ? 1 : 0;
  s.is_mel = options.output == MelOptions::Output::mel;
  s.n_levels = s.is_mel ? plan.n_mels() : plan.n_bins();
  s.power_offset = static_cast<float>(options.power_offset);
  if (options.power != 2.0)
    s.power = options.power == 1.0 ? PowerKind::magnitude : PowerKind::other;
  s.exponent = static_cast<float>(options.power / 2.0);
  s.floor = options.htk_mode ? 1.0F : 0.0F;
  s.log = options.log != MelOptions::Log::none;
  s.amin = static_cast<float>(options.amin);
  s.offset = static_cast<float>(options.log_offset);
  s.factor = static_cast<float>(plan.log_factor());
  s.shift = static_cast<float>(plan.log_shift());
  return s;
}

ConditionSettings make_condition_settings(const MelPlan& plan) {
  constexpr int alignment = 8;
  const MelOptions& options = plan.options();
  ConditionSettings s;
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

std::vector<float> scaled_window(const MelPlan& plan, SampleType samples, float factor) {
  if (takes_plain_samples(plan)) factor *= static_cast<float>(plan.options().input_scale);
  if (samples == SampleType::int16) factor *= kInt16Scale;
  std::vector<float> window(plan.window().begin(), plan.window().end());
  for (float& value : window) value *= factor;
  return window;
}

AnySizeTables::AnySizeTables(const MelPlan& plan)
    : settings(make_settings(plan)),
      window_int16(scaled_window(plan, SampleType::int16, 1.0F)),
      window_float(scaled_window(plan, SampleType::float32, 1.0F)) {
  if (settings.is_mel) bands = BandTables(plan.bands(), plan.weights(), plan.n_bins(), lanes, 1);
}

FusedTables::FusedTables(const MelPlan& plan, NumberType operands) : settings(make_settings(plan)) {
  const float scale = operands == NumberType::float16 ? operand_scale(plan) : 1.0F;
  settings.power_scale = 1.0F / (scale * scale);
  const float factor = 0.5F * scale;  // the halves of even and odd part: fused_phases.h
  switch (plan.n_fft()) {
    case 256:
      fill<Shape256>(*this, plan, factor);
      break;
    case 400:
      fill<Shape400>(*this, plan, factor);
      break;
    case 512:
      fill<Shape512>(*this, plan, factor);
      break;
    case 1024:
      fill<Shape1024>(*this, plan, factor);
      break;
    case 2048:
      fill<Shape2048>(*this, plan, factor);
      break;
    default:
      throw std::invalid_argument("n_fft is " + std::to_string(plan.n_fft()) +
                                  ", the fused kernel has 256, 400, 512, 1024 and 2048");
  }
  if (settings.is_mel)
    bands = BandTables(plan.bands(), plan.weights(), plan.n_bins(), lanes, steps_of);
}

FusedView FusedTables::view(SampleType samples) const {
  const std::vector<Complex>& window = samples == SampleType::int16 ? window_int16 : window_float;
  return {window.data(), first.data(), middle.data(), turn.data()};
}

std::size_t FusedTables::bytes_of_frame(NumberType operands) const {
  const std::size_t points = static_cast<std::size_t>(exchanged) * 2 * size_of(operands);
  const std::size_t power = 4 * static_cast<std::size_t>(settings.n_bins + bands.counts().slots());
  return (std::max(points, power) + 15) / 16 * 16;
}

std::size_t fused_block_bytes(const FusedTables& tables, NumberType operands) {
  const auto frames = static_cast<std::size_t>(fused_warps * 32 / tables.lanes);
  return table_bytes(tables.bands.counts()) + frames * tables.bytes_of_frame(operands);
}

bool is_fused_size(int n_fft) {
  return std::find(std::begin(fused_sizes), std::end(fused_sizes), n_fft) != std::end(fused_sizes);
}

bool has_fused_kernel(const MelPlan& plan) {
  if (!is_fused_size(plan.n_fft())) return false;
  const FusedTables tables(plan, NumberType::float32);  // whose points take the most room
  return fused_block_bytes(tables, NumberType::float32) <= most_block_bytes;
}

}  // namespace melflow::cuda
