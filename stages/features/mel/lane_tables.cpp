#include "stages/features/mel/lane_tables.h"

#include <cmath>
#include <cstddef>
#include <iterator>
#include <limits>
#include <numbers>

namespace melflow {
namespace {

void push_turn(std::vector<float>& to, double angle) {
  to.push_back(static_cast<float>(std::cos(angle)));
  to.push_back(static_cast<float>(std::sin(angle)));
}

}  // namespace

// Of the orders tried, large ones first and 4 at the end was the fastest.
std::vector<int> radices_of(int points) {
  std::vector<int> radices;
  for (const int r : {13, 11, 7, 5, 3}) {
    for (; points % r == 0; points /= r) radices.push_back(r);
  }
  int twos = 0;
  for (; points % 2 == 0; points /= 2) ++twos;
  if (points != 1) return {};
  if (twos == 1) {
    radices.push_back(2);
  } else {
    const int fours = (3 - twos % 3) % 3;  // the rest is a power of eight
    radices.insert(radices.end(), static_cast<std::size_t>((twos - 2 * fours) / 3), 8);
    radices.insert(radices.end(), static_cast<std::size_t>(fours), 4);
  }
  return radices;
}

LaneTables::LaneTables(const MelPlan& plan) {
  const MelOptions& options = plan.options();
  run_.frame_length = plan.frame_length();
  run_.n_bins = plan.n_bins();
  run_.power = options.power;
  run_.power_offset = static_cast<float>(options.power_offset);
  run_.power_floor = static_cast<float>(options.power_floor);
  run_.power_ceiling = std::numeric_limits<float>::infinity();
  if (options.power_ceiling) run_.power_ceiling = static_cast<float>(*options.power_ceiling);
  run_.is_limited = options.power_floor > 0.0 || options.power_ceiling;
  run_.floor = static_cast<float>(band_floor(options));
  run_.piecewise = options.log == MelOptions::Log::piecewise;
  run_.has_steps = run_.floor > 0.0F || run_.piecewise;
  run_.log = has_plain_log(options);
  run_.amin = static_cast<float>(options.amin);
  run_.offset = static_cast<float>(options.log_offset);
  run_.factor = static_cast<float>(plan.log_factor());
  run_.shift = static_cast<float>(plan.log_shift());
  make_transform(plan.n_fft());
  if (options.output == MelOptions::Output::mel) make_bands(plan);
}

void LaneTables::make_transform(int n_fft) {
  const int points = n_fft / 2;
  if (n_fft % 2 != 0 || points > max_points) return;
  const std::vector<int> radices = radices_of(points);
  if (radices.empty()) return;
  run_.points = points;
  int size = points;
  for (auto radix = radices.begin(); std::next(radix) != radices.end(); ++radix) {
    std::vector<float>& twiddle = twiddles_.emplace_back();
    for (int j = 0; j < size / *radix; ++j) {
      for (int q = 1; q < *radix; ++q) push_turn(twiddle, -2.0 * std::numbers::pi * j * q / size);
    }
    run_.passes[run_.n_passes++] = {*radix, size, twiddle.data()};
    size /= *radix;
  }
  run_.last_radix = radices.back();
  // A step leaves output q of a block in its q-th part, so the position of a bin has the digits of
  // its number in reverse.
  for (int k0 = 0; k0 < points / run_.last_radix; ++k0) {
    int at = 0, digits = k0, part = points;
    for (int i = 0; i < run_.n_passes; ++i) {
      const int radix = run_.passes[i].radix;
      part /= radix;
      at += digits % radix * part;
      digits /= radix;
    }
    block_at_.push_back(at);
  }
  run_.block_at = block_at_.data();
  const int blocks = points / run_.last_radix;
  for (int k0 = 0; k0 <= blocks / 2; ++k0) {
    for (int k = k0; k < k0 + points; k += blocks)  // times -i
      push_turn(turn_, -2.0 * std::numbers::pi * k / n_fft - std::numbers::pi / 2);
  }
  run_.turn = turn_.data();
}

void LaneTables::make_bands(const MelPlan& plan) {
  for (const MelBand& band : plan.bands()) {
    first_bin_.push_back(band.first_bin);
    n_weights_.push_back(band.count);
  }
  run_.n_mels = plan.n_mels();
  run_.first_bin = first_bin_.data();
  run_.n_weights = n_weights_.data();
  run_.weights = plan.weights().data();
}

}  // namespace melflow
