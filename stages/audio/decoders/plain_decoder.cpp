// Reads 16-bit mono samples that are stored uncompressed in a file.
#include <algorithm>
#include <bit>

#include "stages/audio/decoders/sound_decoder.h"

namespace melflow {
namespace {

class PlainDecoder final : public SoundDecoder {
 public:
  PlainDecoder(SoundInput& input, const PlainSamples& samples)
      : input_(input), left_(samples.count) {
    info_.samplerate = samples.sample_rate;
    info_.channels = 1;
    info_.frames = samples.count;
    info_.format = SF_FORMAT_WAV | SF_FORMAT_PCM_16;
    input_.seek(samples.offset);
  }

  std::int64_t read(short* out, std::int64_t frames) override {
    const auto want = static_cast<std::size_t>(std::min(frames, left_));
    const std::size_t got = input_.read(std::as_writable_bytes(std::span(out, want))) / 2;
    if constexpr (std::endian::native == std::endian::big)
      std::transform(out, out + got, out, [](short v) {
        return static_cast<short>(__builtin_bswap16(static_cast<unsigned short>(v)));
      });
    left_ -= static_cast<std::int64_t>(got);
    return static_cast<std::int64_t>(got);
  }
  std::int64_t read(float* out, std::int64_t frames) override {
    constexpr std::size_t kMany = 1024;
    short some[kMany];
    const std::int64_t n = read(some, std::min<std::int64_t>(frames, kMany));
    std::transform(some, some + n, out, [](short v) { return static_cast<float>(v) / 32768.0F; });
    return n;
  }

  [[nodiscard]] std::optional<Fault> fault() const override { return std::nullopt; }

 private:
  SoundInput& input_;
  std::int64_t left_;
};

}  // namespace

std::unique_ptr<SoundDecoder> open_plain(SoundInput& input, const PlainSamples& samples) {
  return std::make_unique<PlainDecoder>(input, samples);
}

}  // namespace melflow
