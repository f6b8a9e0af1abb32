#include "stages/audio/decoders/sample_reader.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace melflow {
namespace {

constexpr std::int64_t kMostValues = 8 * SampleReader::kChunk;  // in a buffer

}  // namespace
SampleType sample_type(const SF_INFO& info) {
  return is_narrow(info) && info.channels == 1 ? SampleType::int16 : SampleType::float32;
}

SampleReader::SampleReader(SoundFile sound, Downmix downmix, SampleMeter* meter)
    : sound_(std::move(sound)),
      downmix_(downmix),
      meter_(meter),
      channels_(sound_.info().channels),
      narrow_(is_narrow(sound_.info())),
      chunk_(std::clamp<std::int64_t>(kMostValues / channels_, 1, kChunk)),
      type_(sample_type(sound_.info())) {
  if (channels_ == 1) return;
  const auto values = static_cast<std::size_t>(chunk_ * channels_);
  narrow_ ? narrow_interleaved_.resize(values) : interleaved_.resize(values);
}

std::int64_t SampleReader::read(std::byte* out, std::int64_t want) {
  std::int64_t n = 0;
  if (type_ == SampleType::int16) {
    n = sound_.read(reinterpret_cast<short*>(out), want);
  } else if (channels_ == 1) {
    n = sound_.read(reinterpret_cast<float*>(out), want);
  } else if (narrow_) {
    // Half the bytes of float, and the same values: every sum is exact until it is scaled.
    n = sound_.read(narrow_interleaved_.data(), std::min(want, chunk_));
    if (n > 0) mix(narrow_interleaved_.data(), 1.0F / 32768.0F, reinterpret_cast<float*>(out), n);
  } else {
    n = sound_.read(interleaved_.data(), std::min(want, chunk_));
    if (n > 0) mix(interleaved_.data(), 1.0F, reinterpret_cast<float*>(out), n);
  }
  if (n <= 0) return 0;
  if (type_ == SampleType::float32 && !narrow_) look_at(reinterpret_cast<const float*>(out), n);
  if (meter_ != nullptr && bad_sample_ < 0) show(out, n);
  count_ += n;
  return n;
}

void SampleReader::show(const std::byte* out, std::int64_t n) {
  if (type_ == SampleType::int16)
    meter_->push(reinterpret_cast<const std::int16_t*>(out), n);
  else if (channels_ == 1)
    meter_->push(reinterpret_cast<const float*>(out), n);
  else if (narrow_)
    meter_->push(narrow_interleaved_.data(), n);
  else
    meter_->push(interleaved_.data(), n);
}

template <class Value>
void SampleReader::mix(const Value* in, float scale, float* out, std::int64_t n) {
  if (downmix_.channel > 0) {
    const int pick = downmix_.channel - 1;
    for (std::int64_t i = 0; i < n; ++i)
      out[i] = static_cast<float>(in[i * channels_ + pick]) * scale;
    return;
  }
  const float share = scale * (1.0F / static_cast<float>(channels_));
  if (channels_ == 2) {  // a loop that compilers vectorise
    for (std::int64_t i = 0; i < n; ++i)
      out[i] = (static_cast<float>(in[2 * i]) + static_cast<float>(in[2 * i + 1])) * share;
  } else {
    for (std::int64_t i = 0; i < n; ++i) {
      float sum = 0;
      for (int c = 0; c < channels_; ++c) sum += static_cast<float>(in[i * channels_ + c]);
      out[i] = sum * share;
    }
  }
  // Uses a fixed subset of frames, since all would cost as much as the mean itself.
  constexpr std::int64_t kStep = 127;
  for (std::int64_t i = (kStep - count_ % kStep) % kStep; i < n; i += kStep) {
    float sum = 0;
    for (int c = 0; c < channels_; ++c) sum += std::abs(static_cast<float>(in[i * channels_ + c]));
    levels_.channels += sum * share;
    levels_.mean += std::abs(out[i]);
  }
}

// Magnitudes are ordered as their bits are, with what is no finite number above all others.
void SampleReader::look_at(const float* samples, std::int64_t n) {
  if (bad_sample_ >= 0) return;
  constexpr std::int32_t kMagnitude = 0x7fffffff, kInfinity = 0x7f800000;
  std::int32_t most = std::bit_cast<std::int32_t>(peak_);
  for (std::int64_t i = 0; i < n; ++i)
    most = std::max(most, std::bit_cast<std::int32_t>(samples[i]) & kMagnitude);
  if (most < kInfinity) {
    peak_ = std::bit_cast<float>(most);
    return;
  }
  std::int64_t i = 0;
  while (std::isfinite(samples[i])) ++i;
  bad_sample_ = count_ + i;
}

}  // namespace melflow
