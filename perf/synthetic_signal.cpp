// See synthetic_signal.h. Uses no standard distribution, because these differ between libraries.

#include "synthetic_signal.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace melflow {
namespace {

constexpr std::size_t kTable = 1U << 20;  // samples in one noise table
constexpr std::size_t kTables = 4;

}  // namespace

std::uint64_t mix(std::uint64_t a, std::uint64_t b) {
  return Random(a * 0xD1342543DE82EF95ULL + b).next();
}

NoiseTables make_noise(std::uint64_t seed) {
  NoiseTables tables(kTables, std::vector<float>(kTable));
  for (std::size_t t = 0; t < kTables; ++t) {
    Random random(mix(seed, 0xA0000000U + t));
    float low = 0;
    for (float& x : tables[t]) {
      float sum = -2;  // the sum of four uniform values is nearly normal, and the same everywhere
      for (int i = 0; i < 4; ++i) sum += random.uniform(0, 1);
      // Each table has its own colour, from white to a gentle low-pass.
      const float a = 0.25F * static_cast<float>(t);
      low = a * low + (1 - a) * sum;
      x = low * (1 + static_cast<float>(t)) * 0.5F;
    }
  }
  return tables;
}

Oscillator::Oscillator(double cycles_per_sample, double phase, float gain) : gain_(gain) {
  const double w = 2 * std::numbers::pi * cycles_per_sample;
  for (std::size_t i = 0; i < kLanes; ++i) {
    re_[i] = static_cast<float>(std::cos(phase + w * static_cast<double>(i)));
    im_[i] = static_cast<float>(std::sin(phase + w * static_cast<double>(i)));
  }
  step_re_ = static_cast<float>(std::cos(w * kLanes));
  step_im_ = static_cast<float>(std::sin(w * kLanes));
}

void Oscillator::add(float* out, std::size_t n) {
  for (std::size_t k = 0; k < n; k += kLanes) {
    for (std::size_t i = 0; i < kLanes; ++i) {
      out[k + i] += gain_ * im_[i];
      const float re = re_[i] * step_re_ - im_[i] * step_im_;
      im_[i] = re_[i] * step_im_ + im_[i] * step_re_;
      re_[i] = re;
    }
  }
  for (std::size_t i = 0; i < kLanes; ++i) {  // rounding makes the radius drift: resets it to 1
    const float scale = 1 / std::sqrt(re_[i] * re_[i] + im_[i] * im_[i]);
    re_[i] *= scale;
    im_[i] *= scale;
  }
}

Signal::Signal(const NoiseTables& noise, std::uint64_t key, int rate)
    : noise_(noise),
      key_(key),
      slot_frames_(static_cast<std::size_t>(rate) * 5 / 2 + 1),
      rate_(rate) {
  Random random(key);
  table_ = random.below(kTables);
  offset_ = random.below(kTable);
  noise_gain_ = random.uniform(0.01F, 0.2F);
  for (int i = 0; i < 3; ++i) {
    const float cycles = random.uniform(0.005F, 0.45F);  // of the sample rate
    const float phase = random.uniform(0, 6.28F);
    tones_.emplace_back(cycles, phase, random.uniform(0.005F, 0.15F));
  }
}

void Signal::fill(float* out, std::size_t n) {
  const std::vector<float>& table = noise_[table_];
  for (std::size_t done = 0; done < n;) {
    const std::size_t from = (offset_ + position_ + done) % kTable;
    const std::size_t part = std::min(n - done, kTable - from);
    for (std::size_t i = 0; i < part; ++i) out[done + i] = noise_gain_ * table[from + i];
    done += part;
  }
  for (Oscillator& tone : tones_) tone.add(out, n);
  for (std::size_t slot = position_ / slot_frames_; slot * slot_frames_ < position_ + n; ++slot) {
    add_event(slot, out, n);
  }
  position_ += n;
}

/// Each slot of 2.5 s has one burst with an exponential decay. A hash of the slot places it, so no
/// state is needed.
void Signal::add_event(std::size_t slot, float* out, std::size_t n) const {
  Random random(mix(key_, 0xE0000000U + slot));
  const std::size_t length = slot_frames_ / 5;  // at most 0.5 s
  const std::size_t start = slot * slot_frames_ + random.below(slot_frames_ - length);
  const float gain = random.uniform(0.1F, 0.5F);
  const float tau = random.uniform(0.01F, 0.1F) * static_cast<float>(rate_);  // [samples]
  const std::vector<float>& table = noise_[random.below(kTables)];
  const std::size_t shift = random.below(kTable);
  const std::size_t first = std::max(start, position_);
  const std::size_t last = std::min(start + length, position_ + n);
  if (first >= last) return;
  float envelope = gain * std::exp(-static_cast<float>(first - start) / tau);
  const float decay = std::exp(-1 / tau);
  for (std::size_t i = first; i < last; ++i, envelope *= decay) {
    out[i - position_] += envelope * table[(shift + i) % kTable];
  }
}

}  // namespace melflow
