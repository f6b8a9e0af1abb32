#include "stages/quality/loudness.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "pipeline/base/wide_vectors.h"

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
  Two x1 = load(pair.state[0]), x2 = load(pair.state[1]), y1 = load(pair.state[2]),
      y2 = load(pair.state[3]), z1 = load(pair.state[4]), z2 = load(pair.state[5]), sum{};
  const Biquad &f = filters_[0], &g = filters_[1];
  // The direct form: of each filter only two operations wait for its last value.
  for (std::int64_t i = 0; i < n; ++i) {
    const Two x{a[i], b[i]};
    const Two y = (f.b0 * x + f.b1 * x1 + f.b2 * x2 - f.a2 * y2) - f.a1 * y1;
    const Two z = (y - 2 * y1 + y2 - g.a2 * z2) - g.a1 * z1;  // g.b0 is 1, g.b1 -2, g.b2 1
    x2 = x1, x1 = x;
    y2 = y1, y1 = y;
    z2 = z1, z1 = z;
    sum += z * z;
  }
  pair.state = {{{x1[0], x1[1]},
                 {x2[0], x2[1]},
                 {y1[0], y1[1]},
                 {y2[0], y2[1]},
                 {z1[0], z1[1]},
                 {z2[0], z2[1]}}};
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

namespace {

constexpr int kTimes = 4, kTaps = 24;  // of each phase
constexpr int kNear = 6;               // taps in the middle
constexpr int kFirstNear = (kTaps - kNear) / 2;
constexpr std::int64_t kGroup = 16;     // samples that are looked at together
constexpr float kRounding = 1 + 1e-5F;  // of the sums, in single precision

// The phases between samples, and what bounds their sums.
struct Interpolation {
  std::array<std::array<float, kTaps>, kTimes - 1> taps{};
  float all = 0, far = 0;  // the largest sums of magnitudes: of all taps, and without the near ones
  Interpolation() {
    // A sinc at a quarter of the new rate, under a Hann window over all taps.
    constexpr int kAll = kTimes * kTaps;
    for (int p = 1; p < kTimes; ++p) {
      float every = 0, outer = 0;
      for (int k = 0; k < kTaps; ++k) {
        const int i = k * kTimes + p - kAll / 2;
        const double t = static_cast<double>(i) / kTimes,
                     window = 0.5 + 0.5 * std::cos(2 * std::numbers::pi * i / kAll),
                     sinc = std::sin(std::numbers::pi * t) / (std::numbers::pi * t);
        const auto tap = static_cast<float>(sinc * window);
        taps[static_cast<std::size_t>(p - 1)][static_cast<std::size_t>(k)] = tap;
        every += std::abs(tap);
        if (k < kFirstNear || k >= kFirstNear + kNear) outer += std::abs(tap);
      }
      all = std::max(all, every);
      far = std::max(far, outer);
    }
  }
};

// The largest magnitude of sums of `count` taps from `first` on, of a group of samples.
template <int first, int count>
[[gnu::always_inline]] inline float largest_sum(const float* x, const Interpolation& by) {
  float out = 0;
  for (const auto& taps : by.taps) {
    std::array<float, kGroup> sums{};
    for (int k = first; k < first + count; ++k)
      for (std::size_t l = 0; l < kGroup; ++l)
        sums[l] += taps[static_cast<std::size_t>(k)] * x[static_cast<std::int64_t>(l) - k];
    out = std::max(out, lane_max(kGroup, [&](std::int64_t l) {
                     return std::abs(sums[static_cast<std::size_t>(l)]);
                   }));
  }
  return out;
}

// Returns the largest magnitude of x and between its samples, `peak` at least. Groups in which no
// sum can be larger are passed over: with the largest sample of all that the taps reach, or with
// the sums of the near taps and that sample for the far ones.
MELFLOW_FOR_WIDE_VECTORS float true_peak_of(const float* x, std::int64_t n, float peak,
                                            const Interpolation& by) {
  constexpr std::int64_t kReach = (kTaps + kGroup - 1) / kGroup;  // groups before one
  std::array<float, Chunk::kFrames / kGroup + kReach> most{};
  const auto magnitude = [](const float* from) {
    return lane_max(kGroup, [from](std::int64_t i) { return std::abs(from[i]); });
  };
  const std::int64_t groups = n / kGroup;
  for (std::int64_t g = -kReach; g < groups; ++g) {
    most[static_cast<std::size_t>(g + kReach)] = magnitude(x + g * kGroup);
    if (g >= 0) peak = std::max(peak, most[static_cast<std::size_t>(g + kReach)]);
  }
  for (std::int64_t g = 0; g < groups; ++g) {
    float around = 0;
    for (std::int64_t k = 0; k <= kReach; ++k)
      around = std::max(around, most[static_cast<std::size_t>(g + k)]);
    const float* const at = x + g * kGroup;
    if (around * by.all * kRounding <= peak) continue;
    if ((largest_sum<kFirstNear, kNear>(at, by) + around * by.far) * kRounding <= peak) continue;
    peak = std::max(peak, largest_sum<0, kTaps>(at, by));
  }
  for (std::int64_t i = groups * kGroup; i < n; ++i) {
    peak = std::max(peak, std::abs(x[i]));
    for (const auto& taps : by.taps) {
      float sum = 0;
      for (int k = 0; k < kTaps; ++k) sum += taps[static_cast<std::size_t>(k)] * x[i - k];
      peak = std::max(peak, std::abs(sum));
    }
  }
  return peak;
}

}  // namespace

void TruePeakKernel::push(const Chunk& chunk) {
  static const Interpolation by;
  for (const float* x : chunk.channels) peak_ = true_peak_of(x, chunk.frames, peak_, by);
}

void TruePeakKernel::finish(MeasureValues& out) { out[Measure::true_peak] = peak_; }

}  // namespace melflow
