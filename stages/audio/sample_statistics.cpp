#include "stages/audio/sample_statistics.h"

#include <algorithm>
#include <cmath>

#include "pipeline/base/number_type.h"

namespace melflow {
namespace {

double value_of(std::int16_t x) { return x * (1.0 / 32768); }
double value_of(float x) { return x; }

template <class Sample>
void scale_all(const Sample* samples, std::int64_t count, double mean, double scale, float* out) {
  for (std::int64_t i = 0; i < count; ++i)
    out[i] = static_cast<float>((value_of(samples[i]) - mean) * scale);
}

}  // namespace

template <class Sample>
void SampleStatistics::add_all(const Sample* samples, std::int64_t count) {
  if (count_ == 0 && count > 0) first_ = value_of(samples[0]);
  std::array<double, kLanes> sums = sums_, squares = squares_, peaks{};
  const auto one = [&](std::size_t lane, Sample sample) {
    const double value = value_of(sample), x = value - first_;
    sums[lane] += x;
    squares[lane] += x * x;
    peaks[lane] = std::max(peaks[lane], std::abs(value));
  };
  std::int64_t i = 0;
  for (; i < count && (count_ + i) % kLanes != 0; ++i)
    one(static_cast<std::size_t>((count_ + i) % kLanes), samples[i]);
  for (; i + kLanes <= count; i += kLanes)
    for (std::size_t lane = 0; lane < kLanes; ++lane)
      one(lane, samples[i + static_cast<std::int64_t>(lane)]);
  for (std::size_t lane = 0; i < count; ++i, ++lane) one(lane, samples[i]);
  sums_ = sums;
  squares_ = squares;
  peak_ = std::max(peak_, *std::max_element(peaks.begin(), peaks.end()));
  count_ += count;
}

void SampleStatistics::add(const Samples& samples) {
  if (samples.type == SampleType::int16)
    add_all(reinterpret_cast<const std::int16_t*>(samples.data), samples.count);
  else
    add_all(reinterpret_cast<const float*>(samples.data), samples.count);
}

double SampleStatistics::total(const std::array<double, kLanes>& lanes) {
  double out = 0;
  for (const double lane : lanes) out += lane;
  return out;
}

double SampleStatistics::mean() const {
  return count_ == 0 ? 0 : first_ + total(sums_) / static_cast<double>(count_);
}

double SampleStatistics::variance() const {
  if (count_ == 0) return 0;
  const auto n = static_cast<double>(count_);
  const double mean = total(sums_) / n;
  return std::max(0.0, total(squares_) / n - mean * mean);
}

void scale_samples(const Samples& samples, double mean, double scale, float* out) {
  if (samples.type == SampleType::int16)
    scale_all(reinterpret_cast<const std::int16_t*>(samples.data), samples.count, mean, scale, out);
  else
    scale_all(reinterpret_cast<const float*>(samples.data), samples.count, mean, scale, out);
}

}  // namespace melflow
