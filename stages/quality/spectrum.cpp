#include "stages/quality/spectrum.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "pipeline/base/wide_vectors.h"

namespace melflow {
namespace {

constexpr int kHumFrame = 1024;  // samples of about 1 kHz, half of them also of the frame before
constexpr int kLeastHumFrames = 3;
constexpr double kHumRate = 1000;  // [Hz]
constexpr double kBelowStrongest = 1e-8, kAboveRounding = 10;

MELFLOW_FOR_WIDE_VECTORS void multiply(const float* a, const float* b, std::size_t n, float* out) {
  for (std::size_t i = 0; i < n; ++i) out[i] = a[i] * b[i];
}

MELFLOW_FOR_WIDE_VECTORS void powers(const float* bins, std::size_t n, float* out) {
  for (std::size_t k = 0; k < n; ++k)
    out[k] = bins[2 * k] * bins[2 * k] + bins[2 * k + 1] * bins[2 * k + 1];
}

MELFLOW_FOR_WIDE_VECTORS void add(const float* values, std::size_t n, double* to) {
  for (std::size_t k = 0; k < n; ++k) to[k] += static_cast<double>(values[k]);
}

MELFLOW_FOR_WIDE_VECTORS float sum_of(const float* x, std::int64_t n) {
  return lane_sum(n, [x](std::int64_t i) { return x[i]; });
}

}  // namespace

PowerSpectrum::PowerSpectrum(int size)
    : size_(size),
      fft_(size),
      frame_(static_cast<std::size_t>(size)),
      bins_(static_cast<std::size_t>(size + 2)),
      work_(fft_.make_work()),
      window_(static_cast<std::size_t>(size)),
      power_(static_cast<std::size_t>(size / 2 + 1)) {
  for (int i = 0; i < size; ++i)
    window_[static_cast<std::size_t>(i)] =
        static_cast<float>(0.5 - 0.5 * std::cos(2 * std::numbers::pi * i / size));
}

const std::vector<float>& PowerSpectrum::of(const float* in) {
  multiply(in, window_.data(), window_.size(), frame_.data());
  fft_.execute(frame_.data(), bins_.data(), work_);
  powers(bins_.data(), power_.size(), power_.data());
  return power_;
}

BandwidthKernel::BandwidthKernel(int sample_rate)
    : rate_(sample_rate),
      spectrum_(static_cast<int>(Chunk::kFrames)),
      sums_(static_cast<std::size_t>(Chunk::kFrames / 2 + 1)) {}

// Looks at all of the first chunks, then at every second one, and at one channel of each in turn:
// the cost does not grow with channels.
void BandwidthKernel::push(const Chunk& chunk) {
  const auto number = static_cast<std::size_t>(chunk.start / Chunk::kFrames);
  constexpr std::size_t kAll = 128;
  if (chunk.frames < Chunk::kFrames || (number >= kAll && number % 2 != 0)) return;
  const std::size_t turn = number < kAll ? number : number / 2;
  const std::vector<float>& power = spectrum_.of(chunk.channels[turn % chunk.channels.size()]);
  add(power.data(), sums_.size(), sums_.data());
  ++frames_;
}

void BandwidthKernel::finish(MeasureValues& out) {
  const double strongest = *std::max_element(sums_.begin(), sums_.end());
  if (frames_ == 0 || strongest == 0) return;
  // The rounding to 16 bits has a variance of a twelfth of a step; with the Hann window a bin has
  // 3/8 of it times the length.
  constexpr double kStep = 1.0 / 32768;
  const double rounding = kStep * kStep / 12 * 0.375 * static_cast<double>(Chunk::kFrames);
  const double least = std::max(strongest * kBelowStrongest,
                                kAboveRounding * rounding * static_cast<double>(frames_));
  std::size_t k = sums_.size() - 1;
  while (k > 0 && sums_[k] < least) --k;
  if (sums_[k] < least) return;
  out[Measure::bandwidth] =
      static_cast<float>(static_cast<double>(k) * rate_ / static_cast<double>(Chunk::kFrames));
}

HumKernel::HumKernel(int sample_rate)
    : step_(std::max(1, static_cast<int>(std::lround(sample_rate / kHumRate)))),
      rate_(static_cast<double>(sample_rate) / step_),
      spectrum_(kHumFrame),
      logs_(static_cast<std::size_t>(kHumFrame / 2 + 1)) {
  frame_.reserve(kHumFrame);
}

void HumKernel::push(const Chunk& chunk) {
  for (std::int64_t at = 0; at < chunk.frames;) {
    const std::int64_t n = std::min<std::int64_t>(step_ - fill_, chunk.frames - at);
    for (const float* x : chunk.channels) sum_ += sum_of(x + at, n);
    at += n;
    fill_ += static_cast<int>(n);
    if (fill_ < step_) return;
    frame_.push_back(static_cast<float>(sum_ / step_));
    sum_ = 0;
    fill_ = 0;
    if (frame_.size() < kHumFrame) continue;
    const std::vector<float>& power = spectrum_.of(frame_.data());
    for (std::size_t k = 0; k < logs_.size(); ++k)
      logs_[k] += std::log10(static_cast<double>(power[k]) + 1e-12);
    ++frames_;
    frame_.erase(frame_.begin(), frame_.begin() + kHumFrame / 2);
  }
}

// Returns how far the multiples of a mains frequency stand out [dB]: the stronger of two that are
// peaks at multiples of one frequency near it; 0 where no two are. Notes and voices beside a
// multiple are of other frequencies.
double HumKernel::stands_out(double hz) const {
  constexpr double kNear = 0.005;  // of the mains frequency, how far it may be off
  constexpr double kEqual = 0.2;   // [Hz], between two lines' frequencies, each divided by m
  const double width = rate_ / kHumFrame;
  const auto level = [&](std::ptrdiff_t k) {
    return 10 * logs_[static_cast<std::size_t>(k)] / static_cast<double>(frames_);
  };
  struct Line {
    double level;      // above what is beside it [dB]
    double frequency;  // divided by m [Hz]
  };
  std::vector<Line> lines;
  for (int m = 1; m <= 5 && m * hz + 12 < rate_ / 2; ++m) {
    const std::ptrdiff_t nearest = std::lround(m * hz / width);
    const std::ptrdiff_t k =
        std::max({nearest - 1, nearest, nearest + 1},
                 [&](std::ptrdiff_t a, std::ptrdiff_t b) { return level(a) < level(b); });
    const double left = level(k - 1), here = level(k), right = level(k + 1);
    if (left > here || right > here) continue;
    // A parabola through the three logarithms, which a Hann window's main lobe nearly is.
    const double bend = left - 2 * here + right;
    const double at = static_cast<double>(k) + (bend < 0 ? 0.5 * (left - right) / bend : 0);
    const double frequency = at * width / m;
    if (std::abs(frequency - hz) > kNear * hz) continue;
    std::vector<double> beside;
    for (double off = 4; off <= 12; off += width)
      for (const double near : {m * hz - off, m * hz + off})
        beside.push_back(level(std::lround(near / width)));
    const auto middle = beside.begin() + static_cast<std::ptrdiff_t>(beside.size() / 2);
    std::nth_element(beside.begin(), middle, beside.end());
    lines.push_back({here - *middle, frequency});
  }
  std::sort(lines.begin(), lines.end(),
            [](const Line& a, const Line& b) { return a.level > b.level; });
  for (std::size_t i = 1; i < lines.size(); ++i)
    for (std::size_t stronger = 0; stronger < i; ++stronger)
      if (std::abs(lines[i].frequency - lines[stronger].frequency) <= kEqual) return lines[i].level;
  return 0;
}

void HumKernel::finish(MeasureValues& out) {
  if (frames_ < kLeastHumFrames) return;
  const double at50 = stands_out(50), at60 = stands_out(60);
  const double most = std::max({at50, at60, 0.0});
  out[Measure::hum] = static_cast<float>(most);
  if (most > 0) out[Measure::hum_hz] = at50 >= at60 ? 50.0F : 60.0F;
}

}  // namespace melflow
