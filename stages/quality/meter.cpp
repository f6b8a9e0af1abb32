#include "stages/quality/meter.h"

#include <algorithm>
#include <cmath>

#include "pipeline/base/wide_vectors.h"
#include "stages/quality/clipping.h"
#include "stages/quality/interruptions.h"
#include "stages/quality/levels.h"
#include "stages/quality/loudness.h"
#include "stages/quality/snr.h"
#include "stages/quality/spectrum.h"

namespace melflow {
namespace {

template <class Value>
[[gnu::always_inline]] inline void take_channel_inline(const Value* samples, std::size_t channels,
                                                       std::int64_t n, float scale, float* to) {
  if (channels == 1)  // loops that compilers vectorise
    for (std::int64_t i = 0; i < n; ++i) to[i] = static_cast<float>(samples[i]) * scale;
  else if (channels == 2)
    for (std::int64_t i = 0; i < n; ++i) to[i] = static_cast<float>(samples[2 * i]) * scale;
  else
    for (std::int64_t i = 0; i < n; ++i)
      to[i] = static_cast<float>(samples[static_cast<std::size_t>(i) * channels]) * scale;
}

// The values of one channel of n frames.
MELFLOW_FOR_WIDE_VECTORS void take_channel(const std::int16_t* samples, std::size_t channels,
                                           std::int64_t n, float scale, float* to) {
  take_channel_inline(samples, channels, n, scale, to);
}
MELFLOW_FOR_WIDE_VECTORS void take_channel(const float* samples, std::size_t channels,
                                           std::int64_t n, float scale, float* to) {
  take_channel_inline(samples, channels, n, scale, to);
}

}  // namespace

QualityMeter::QualityMeter(const MeasureSet& wanted, const QualityFloors& floors, int sample_rate,
                           int channels)
    : wanted_(wanted),
      samples_(static_cast<std::size_t>(channels) * (Chunk::kHistory + Chunk::kFrames)) {
  chunk_.sample_rate = sample_rate;
  for (int c = 0; c < channels; ++c)
    chunk_.channels.push_back(channel(static_cast<std::size_t>(c)));
  const auto add = [&](MeasureKernel kind, const auto& make) {
    for (const MeasureInfo& m : measures())
      if (m.kernel == kind && wanted[static_cast<std::size_t>(measure_of(m))]) {
        kernels_.push_back(make());
        return;
      }
  };
  const auto mean_square = [](double db) { return std::pow(10.0, db / 10); };
  add(MeasureKernel::levels, [&] {
    return std::make_unique<LevelsKernel>(sample_rate, channels, mean_square(floors.quiet_db),
                                          mean_square(floors.silent_db));
  });
  add(MeasureKernel::clipping, [&] { return std::make_unique<ClippingKernel>(channels); });
  add(MeasureKernel::dropouts, [&] { return std::make_unique<DropoutKernel>(sample_rate); });
  add(MeasureKernel::repeats, [&] { return std::make_unique<RepeatKernel>(sample_rate); });
  add(MeasureKernel::clicks, [&] { return std::make_unique<ClickKernel>(sample_rate); });
  add(MeasureKernel::snr, [&] { return std::make_unique<SnrKernel>(sample_rate); });
  add(MeasureKernel::bandwidth, [&] { return std::make_unique<BandwidthKernel>(sample_rate); });
  add(MeasureKernel::hum, [&] { return std::make_unique<HumKernel>(sample_rate); });
  add(MeasureKernel::loudness,
      [&] { return std::make_unique<LoudnessKernel>(sample_rate, channels); });
  add(MeasureKernel::true_peak, [&] { return std::make_unique<TruePeakKernel>(); });
}

template <class Value>
void QualityMeter::take(const Value* samples, std::int64_t frames, float scale) {
  const std::size_t channels = chunk_.channels.size();
  while (frames > 0) {
    const std::int64_t n = std::min(Chunk::kFrames - chunk_.frames, frames);
    for (std::size_t c = 0; c < channels; ++c)
      take_channel(samples + c, channels, n, scale, channel(c) + chunk_.frames);
    chunk_.frames += n;
    samples += n * static_cast<std::int64_t>(channels);
    frames -= n;
    if (chunk_.frames == Chunk::kFrames) close_chunk();
  }
}

void QualityMeter::push(const std::int16_t* samples, std::int64_t frames) {
  take(samples, frames, 1.0F / 32768);
}

void QualityMeter::push(const float* samples, std::int64_t frames) { take(samples, frames, 1); }

void QualityMeter::close_chunk() {
  for (const auto& kernel : kernels_) kernel->push(chunk_);
  chunk_.start += chunk_.frames;
  for (std::size_t c = 0; c < chunk_.channels.size(); ++c) {
    const float* end = channel(c) + chunk_.frames;
    std::copy(end - Chunk::kHistory, end, channel(c) - Chunk::kHistory);
  }
  chunk_.frames = 0;
}

std::shared_ptr<MeasureValues> QualityMeter::finish(double lost) {
  if (chunk_.frames > 0) close_chunk();
  auto out = std::make_shared<MeasureValues>();
  if (chunk_.start > 0)
    for (const auto& kernel : kernels_) kernel->finish(*out);
  (*out)[Measure::lost_share] = static_cast<float>(lost);
  const MeasureValues none;
  for (std::size_t i = 0; i < kMeasureCount; ++i)
    if (!wanted_[i]) out->of[i] = none.of[i];
  return out;
}

}  // namespace melflow
