// Everything is computed in double and rounded to float once.

#include "cuda/mel_tables.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <numbers>
#include <stdexcept>
#include <string>

#include "cuda/fused_shape.h"

namespace melflow::cuda {
namespace {

Complex turned(double turns) {
  const double angle = -2.0 * std::numbers::pi * turns;
  return {static_cast<float>(std::cos(angle)), static_cast<float>(std::sin(angle))};
}

// float16 ends at 65504: returns a power of two that keeps every sum of a frame's samples at full
// scale below 32768. Stored values lack the sums of the last pass, so pre-emphasis and floats
// beyond 1 have room as well; small values stay far above the type's smallest.
float operand_scale(const FrontEnd& front_end) {
  const double largest = 0.5 * front_end.largest_sum;
  return static_cast<float>(std::exp2(std::floor(std::log2(32768.0 / largest))));
}

// [count][lanes]: value k of every lane side by side; of(lane, k) is 0 if a lane has none.
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
void fill(FusedTables& tables, const FrontEnd& front_end, float factor) {
  tables.lanes = S::lanes;
  tables.exchanged = S::exchanged;
  tables.window_int16 = window_by_lane<S>(scaled_window(front_end, SampleType::int16, factor));
  tables.window_float = window_by_lane<S>(scaled_window(front_end, SampleType::float32, factor));
  make_twiddles<S>(tables);
}

}  // namespace

std::vector<float> scaled_window(const FrontEnd& front_end, SampleType samples, float factor) {
  factor *= samples == SampleType::int16 ? front_end.scale_int16 : front_end.scale_float;
  std::vector<float> window = front_end.window;
  for (float& value : window) value *= factor;
  return window;
}

AnySizeTables::AnySizeTables(const FrontEnd& front_end)
    : settings(front_end.settings),
      window_int16(scaled_window(front_end, SampleType::int16, 1.0F)),
      window_float(scaled_window(front_end, SampleType::float32, 1.0F)) {
  if (settings.is_mel)
    bands = BandTables(front_end.bands, front_end.weights, settings.n_bins, lanes, 1);
}

FusedTables::FusedTables(const FrontEnd& front_end, NumberType operands)
    : settings(front_end.settings) {
  const float scale = operands == NumberType::float16 ? operand_scale(front_end) : 1.0F;
  settings.power_scale = 1.0F / (scale * scale);
  const float factor = 0.5F * scale;  // the factors 1/2 of even and odd part: fused_phases.h
  switch (front_end.settings.n_fft) {
    case 256:
      fill<Shape256>(*this, front_end, factor);
      break;
    case 400:
      fill<Shape400>(*this, front_end, factor);
      break;
    case 512:
      fill<Shape512>(*this, front_end, factor);
      break;
    case 1024:
      fill<Shape1024>(*this, front_end, factor);
      break;
    case 2048:
      fill<Shape2048>(*this, front_end, factor);
      break;
    default:
      throw std::invalid_argument("n_fft is " + std::to_string(front_end.settings.n_fft) +
                                  ", the fused kernel has 256, 400, 512, 1024 and 2048");
  }
  if (settings.is_mel)
    bands = BandTables(front_end.bands, front_end.weights, settings.n_bins, lanes, steps_of);
}

FusedView FusedTables::view(SampleType samples) const {
  const std::vector<Complex>& window = samples == SampleType::int16 ? window_int16 : window_float;
  return {window.data(), first.data(), middle.data(), turn.data()};
}

std::size_t FusedTables::partials_at(NumberType operands) const {
  const std::size_t points = static_cast<std::size_t>(exchanged) * 2 * size_of(operands);
  const std::size_t power = 4 * static_cast<std::size_t>(settings.n_bins);
  return (std::max(points, power) + 15) / 16 * 16;
}

std::size_t FusedTables::bytes_of_frame(NumberType operands) const {
  const std::size_t bytes =
      partials_at(operands) + 4 * static_cast<std::size_t>(bands.counts().partials());
  // With two frames per warp, their lanes read bins from different banks: the frames are half of
  // the banks apart.
  constexpr std::size_t all_banks = 128;
  const std::size_t unit = lanes == 32 ? 16 : all_banks;
  return (bytes + unit - 1) / unit * unit + (lanes == 32 ? 0 : all_banks / 2);
}

std::size_t fused_block_bytes(const FusedTables& tables, NumberType operands) {
  const auto frames = static_cast<std::size_t>(fused_warps * 32 / tables.lanes);
  return table_bytes(tables.bands.counts()) + frames * tables.bytes_of_frame(operands);
}

bool is_fused_size(int n_fft) {
  return std::find(std::begin(fused_sizes), std::end(fused_sizes), n_fft) != std::end(fused_sizes);
}

bool has_fused_kernel(const FrontEnd& front_end) {
  if (!is_fused_size(front_end.settings.n_fft)) return false;
  const FusedTables tables(front_end, NumberType::float32);  // whose points take the most room
  return fused_block_bytes(tables, NumberType::float32) <= most_block_bytes;
}

}  // namespace melflow::cuda
