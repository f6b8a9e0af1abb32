#include "stages/quality/loudness.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace melflow {
namespace {

constexpr double kOffset = -0.691;  // [LUFS]
constexpr double kLowest = -70, kClassWidth = 0.05;

double loudness_of(double energy) { return kOffset + 10 * std::log10(energy); }

// BS.1770-5, table 3, by the order of channels in files: L R C (LFE) Ls Rs; others count as front.
std::vector<double> channel_weights(int channels) {
  std::vector<double> out(static_cast<std::size_t>(channels), 1.0);
  if (channels == 5) out[3] = out[4] = 1.41;
  if (channels == 6) out[3] = 0, out[4] = out[5] = 1.41;
  return out;
}

}  // namespace

// The standard gives coefficients at 48 kHz; these are the analogue filters that they come from.
std::array<Biquad, 2> k_weighting(double sample_rate) {
  std::array<Biquad, 2> out;
  {
    constexpr double kHz = 1681.974450955533, kGain = 3.999843853973347, kQ = 0.7071752369554196;
    const double k = std::tan(std::numbers::pi * kHz / sample_rate),
                 vh = std::pow(10.0, kGain / 20), vb = std::pow(vh, 0.4996667741545416),
                 a0 = 1 + k / kQ + k * k;
    out[0] = {(vh + vb * k / kQ + k * k) / a0, 2 * (k * k - vh) / a0,
              (vh - vb * k / kQ + k * k) / a0, 2 * (k * k - 1) / a0, (1 - k / kQ + k * k) / a0};
  }
  {
    constexpr double kHz = 38.13547087602444, kQ = 0.5003270373238773;
    const double k = std::tan(std::numbers::pi * kHz / sample_rate), a0 = 1 + k / kQ + k * k;
    out[1] = {1, -2, 1, 2 * (k * k - 1) / a0, (1 - k / kQ + k * k) / a0};
  }
  return out;
}

void EnergyHistogram::add(double energy) {
  const double loudness = energy > 0 ? loudness_of(energy) : -1e9;
  if (loudness < kLowest) return;
  Class& to = classes_[static_cast<std::size_t>(
      std::min((loudness - kLowest) / kClassWidth, static_cast<double>(kClasses - 1)))];
  ++to.count;
  to.energy += energy;
  ++count_;
}

double EnergyHistogram::mean(double least) const {
  double sum = 0;
  std::int64_t count = 0;
  for (const Class& c : classes_)
    if (c.count > 0 && c.energy / static_cast<double>(c.count) >= least)
      sum += c.energy, count += c.count;
  return count > 0 ? sum / static_cast<double>(count) : 0;
}

double EnergyHistogram::percentile(double share, double least) const {
  std::int64_t count = 0;
  const auto is_in = [least](const Class& c) {
    return c.count > 0 && c.energy / static_cast<double>(c.count) >= least;
  };
  for (const Class& c : classes_) count += is_in(c) ? c.count : 0;
  auto place = static_cast<std::int64_t>(std::lround(share * static_cast<double>(count - 1)));
  for (const Class& c : classes_) {
    if (!is_in(c)) continue;
    if (place < c.count) return loudness_of(c.energy / static_cast<double>(c.count));
    place -= c.count;
  }
  return kLowest;
}

LoudnessKernel::LoudnessKernel(int sample_rate, int channels)
    : filters_(k_weighting(sample_rate)),
      weights_(channel_weights(channels)),
      pairs_(static_cast<std::size_t>((channels + 1) / 2)),
      step_(std::max(1, (sample_rate + 50) / 100)) {}

// Returns the weighted sum of the squares of both channels after the filters.
double LoudnessKernel::weigh(ChannelPair& pair, const float* a, const float* b, std::int64_t n,
                             std::array<double, 2> weights) const {
  using Two = double __attribute__((vector_size(16)));
  const auto load = [](const std::array<double, 2>& from) { return Two{from[0], from[1]}; };
  Two s0 = load(pair.state[0]), s1 = load(pair.state[1]), s2 = load(pair.state[2]),
      s3 = load(pair.state[3]), sum{};
  const Biquad &f = filters_[0], &g = filters_[1];
  for (std::int64_t i = 0; i < n; ++i) {
    const Two x{a[i], b[i]};
    const Two y = f.b0 * x + s0;
    s0 = f.b1 * x - f.a1 * y + s1;
    s1 = f.b2 * x - f.a2 * y;
    const Two z = y + s2;  // g.b0 is 1, g.b1 -2, g.b2 1
    s2 = s3 - 2 * y - g.a1 * z;
    s3 = y - g.a2 * z;
    sum += z * z;
  }
  pair.state = {{{s0[0], s0[1]}, {s1[0], s1[1]}, {s2[0], s2[1]}, {s3[0], s3[1]}}};
  // Filters that ring out in silence would become slow, and their values mean nothing.
  for (auto& values : pair.state)
    for (double& value : values)
      if (std::abs(value) < 1e-30) value = 0;
  return sum[0] * weights[0] + sum[1] * weights[1];
}

void LoudnessKernel::push(const Chunk& chunk) {
  for (std::int64_t at = 0; at < chunk.frames;) {
    const std::int64_t n = std::min(step_ - fill_, chunk.frames - at);
    for (std::size_t p = 0; p < pairs_.size(); ++p) {
      const std::size_t a = 2 * p, b = std::min(2 * p + 1, weights_.size() - 1);
      energy_ += weigh(pairs_[p], chunk.channels[a] + at, chunk.channels[b] + at, n,
                       {weights_[a], b == a ? 0 : weights_[b]});
    }
    fill_ += n;
    at += n;
    if (fill_ == step_) close_step();
  }
}

// Blocks of 400 ms and 3 s begin every 100 ms, as the gates need them; the greatest momentary
// loudness is looked for every 10 ms, since a sound begins anywhere.
void LoudnessKernel::close_step() {
  const auto size = static_cast<std::int64_t>(last_.size());
  last_[static_cast<std::size_t>(steps_ % size)] = energy_;
  ++steps_;
  energy_ = 0;
  fill_ = 0;
  const auto mean = [&](std::int64_t steps) {
    double sum = 0;
    for (std::int64_t k = 1; k <= steps; ++k)
      sum += last_[static_cast<std::size_t>((steps_ - k) % size)];
    return sum / static_cast<double>(steps * step_);
  };
  constexpr std::int64_t kMomentary = 40, kBlocks = 10;
  if (steps_ < kMomentary) return;
  const double block = mean(kMomentary);
  momentary_ = std::max(momentary_, block);
  if (steps_ % kBlocks != 0) return;
  blocks_.add(block);
  if (steps_ < size) return;
  const double longer = mean(size);
  ranges_.add(longer);
  short_term_ = std::max(short_term_, longer);
}

void LoudnessKernel::finish(MeasureValues& out) {
  if (momentary_ > 0)
    out[Measure::loudness_momentary] = static_cast<float>(loudness_of(momentary_));
  if (short_term_ > 0)
    out[Measure::loudness_short_term] = static_cast<float>(loudness_of(short_term_));
  if (!blocks_.is_empty()) {
    const double gate = blocks_.mean(0) * 0.1;  // 10 LU below
    out[Measure::loudness] = static_cast<float>(loudness_of(blocks_.mean(gate)));
  }
  if (!ranges_.is_empty()) {
    const double gate = ranges_.mean(0) * 0.01;  // 20 LU below
    out[Measure::loudness_range] =
        static_cast<float>(ranges_.percentile(0.95, gate) - ranges_.percentile(0.1, gate));
  }
}

TruePeakKernel::TruePeakKernel() {
  // A sinc at a quarter of the new rate, under a Hann window over all taps.
  constexpr int kAll = kTimes * kTaps;
  for (int i = 0; i < kAll; ++i) {
    const double t = static_cast<double>(i - kAll / 2) / kTimes,
                 window = 0.5 + 0.5 * std::cos(2 * std::numbers::pi * (i - kAll / 2) / kAll),
                 sinc = t == 0 ? 1 : std::sin(std::numbers::pi * t) / (std::numbers::pi * t);
    phases_[static_cast<std::size_t>(i % kTimes)][static_cast<std::size_t>(i / kTimes)] =
        static_cast<float>(sinc * window);
  }
}

void TruePeakKernel::push(const Chunk& chunk) {
  for (const float* x : chunk.channels) {
    peak_ = std::max(peak_, lane_max(chunk.frames, [x](std::int64_t i) { return std::abs(x[i]); }));
    // Phase 0 is the samples themselves.
    for (std::size_t p = 1; p < kTimes; ++p) {
      const auto& taps = phases_[p];
      peak_ = std::max(peak_, lane_max(chunk.frames, [x, &taps](std::int64_t i) {
                         float sum = 0;
                         for (int k = 0; k < kTaps; ++k)
                           sum += taps[static_cast<std::size_t>(k)] * x[i - k];
                         return std::abs(sum);
                       }));
    }
  }
}

void TruePeakKernel::finish(MeasureValues& out) { out[Measure::true_peak] = peak_; }

}  // namespace melflow
