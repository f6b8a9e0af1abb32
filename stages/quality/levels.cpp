#include "stages/quality/levels.h"

#include <algorithm>
#include <cmath>

#include "pipeline/base/wide_vectors.h"

namespace melflow {
namespace {

// More channels are compared with the first one only: pairs grow with the square.
constexpr int kMostCompared = 8;
constexpr double kEqual = 1e-5;     // power of a difference: 50 dB below
constexpr double kInverted = -0.9;  // correlation

MELFLOW_FOR_WIDE_VECTORS float total_of(const float* x, std::int64_t n) {
  return lane_sum(n, [x](std::int64_t i) { return x[i]; });
}

MELFLOW_FOR_WIDE_VECTORS float peak_of(const float* x, std::int64_t n) {
  return lane_max(n, [x](std::int64_t i) { return std::abs(x[i]); });
}

MELFLOW_FOR_WIDE_VECTORS float product_of(const float* a, const float* b, std::int64_t n) {
  return lane_sum(n, [a, b](std::int64_t i) { return a[i] * b[i]; });
}

}  // namespace

LevelsKernel::LevelsKernel(int sample_rate, int channels, double quiet, double silent)
    : rate_(sample_rate),
      frame_length_(std::max(1, sample_rate / 100)),
      channels_(static_cast<std::size_t>(channels)),
      quiet_{quiet},
      silent_{silent} {
  for (int b = 1; b < channels; ++b)
    for (int a = 0; a < (channels <= kMostCompared ? b : 1); ++a) pairs_.push_back({a, b});
}

void LevelsKernel::Floor::frame(double level, std::int64_t number) {
  if (level >= mean_square) {
    run = 0;
    return;
  }
  ++below;
  if (++run > longest) {
    longest = run;
    longest_at = number + 1 - run;
  }
}

void LevelsKernel::close_frame() {
  const double level =
      in_frame_ / static_cast<double>(frame_fill_ * static_cast<std::int64_t>(channels_.size()));
  quiet_.frame(level, frames_);
  silent_.frame(level, frames_);
  const double step = level > 0 ? (10 * std::log10(level) - kLowest) / kStep : 0;
  ++levels_[static_cast<std::size_t>(
      std::clamp(step, 0.0, static_cast<double>(levels_.size() - 1)))];
  ++frames_;
  in_frame_ = 0;
  frame_fill_ = 0;
}

void LevelsKernel::push(const Chunk& chunk) {
  for (std::size_t c = 0; c < channels_.size(); ++c) {
    channels_[c].sum += total_of(chunk.channels[c], chunk.frames);
    channels_[c].peak = std::max(channels_[c].peak, peak_of(chunk.channels[c], chunk.frames));
  }
  for (std::int64_t at = 0; at < chunk.frames;) {
    const std::int64_t n = std::min(frame_length_ - frame_fill_, chunk.frames - at);
    for (std::size_t c = 0; c < channels_.size(); ++c) {
      const float* x = chunk.channels[c] + at;
      const float squares = product_of(x, x, n);
      channels_[c].squares += squares;
      in_frame_ += squares;
    }
    frame_fill_ += n;
    if (frame_fill_ == frame_length_) close_frame();
    at += n;
  }
  for (Pair& p : pairs_)
    p.product += product_of(chunk.channels[static_cast<std::size_t>(p.a)],
                            chunk.channels[static_cast<std::size_t>(p.b)], chunk.frames);
  samples_ += chunk.frames;
}

void LevelsKernel::finish(MeasureValues& out) {
  // A rest of less than half a frame says little of a level.
  if (frame_fill_ > 0 && (2 * frame_fill_ >= frame_length_ || frames_ == 0)) close_frame();
  const auto samples = static_cast<double>(samples_);
  double squares = 0, dc = 0;
  float peak = 0;
  int quiet_channels = 0;
  for (const Channel& c : channels_) {
    squares += c.squares;
    peak = std::max(peak, c.peak);
    dc = std::max(dc, std::abs(c.sum));
    quiet_channels += c.squares / samples < silent_.mean_square ? 1 : 0;
  }
  const auto channels = static_cast<double>(channels_.size());
  out[Measure::peak] = peak;
  out[Measure::rms] = static_cast<float>(std::sqrt(squares / (samples * channels)));
  out[Measure::dc] = static_cast<float>(dc / samples);
  out[Measure::dead_channels] =
      static_cast<float>(quiet_channels < static_cast<int>(channels_.size()) ? quiet_channels : 0);

  std::vector<char> equal(channels_.size()), inverted(channels_.size());
  for (const Pair& p : pairs_) {
    const double a = channels_[static_cast<std::size_t>(p.a)].squares,
                 b = channels_[static_cast<std::size_t>(p.b)].squares;
    if (std::min(a, b) / samples < silent_.mean_square) continue;
    const auto which = static_cast<std::size_t>(p.b);
    if (a + b - 2 * p.product < kEqual * (a + b)) equal[which] = 1;
    if (p.product < kInverted * std::sqrt(a * b)) inverted[which] = 1;
  }
  const auto number = [](const std::vector<char>& of) {
    return static_cast<float>(std::count(of.begin(), of.end(), 1));
  };
  out[Measure::equal_channels] = number(equal);
  out[Measure::inverted_channels] = number(inverted);

  const auto share = [&](std::int64_t frames) {
    return static_cast<float>(static_cast<double>(frames) / static_cast<double>(frames_));
  };
  const auto seconds = [&](std::int64_t frames) {
    return static_cast<float>(static_cast<double>(frames * frame_length_) / rate_);
  };
  out[Measure::quiet_share] = share(quiet_.below);
  out[Measure::quiet_longest] = seconds(quiet_.longest);
  out[Measure::silent_share] = share(silent_.below);
  out[Measure::silent_longest] = seconds(silent_.longest);
  if (silent_.longest > 0) out[Measure::silent_at] = seconds(silent_.longest_at);
  std::size_t step = 0;
  for (std::int64_t below = levels_[0]; below * 10 <= frames_ && step + 1 < levels_.size();)
    below += levels_[++step];
  out[Measure::noise_floor] = static_cast<float>(kLowest + kStep * static_cast<double>(step));
}

}  // namespace melflow
