// Measures decoding: one recording per format, encoded by libsndfile, is decoded from memory by the
// decoders of the stage decode, to the sample type that the stage asks for.
#include <sndfile.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <span>

#include <fmt/format.h>

#include "apps/bench/measurements.h"
#include "pipeline/base/problem.h"
#include "stages/audio/decoders/sound_file.h"

namespace melflow {
namespace {

constexpr int kRate = 16000;  // [Hz]
constexpr std::int64_t kSeconds = 10;
constexpr std::int64_t kBlock = 4096;  // [samples] at a time

struct Format {
  const char* name;
  const char* ending;
  int code;
};
constexpr Format kFormats[] = {
    {"WAV", "wav", SF_FORMAT_WAV | SF_FORMAT_PCM_16},
    {"FLAC", "flac", SF_FORMAT_FLAC | SF_FORMAT_PCM_16},
    {"Ogg Vorbis", "ogg", SF_FORMAT_OGG | SF_FORMAT_VORBIS},
    // libsndfile's number for MP3 since 1.1; older versions report an error.
    {"MP3", "mp3", 0x230000 | 0x0082},
};

SF_INFO info_of(const Format& format) {
  SF_INFO out{};
  out.samplerate = kRate;
  out.channels = 1;
  out.format = format.code;
  return out;
}

std::vector<char> encoded(const Format& format, const std::string& path) {
  struct Close {
    void operator()(SNDFILE* file) const { sf_close(file); }
  };
  const std::vector<std::int16_t> samples = tones_and_noise(kSeconds * kRate);
  SF_INFO info = info_of(format);
  std::unique_ptr<SNDFILE, Close> file(sf_open(path.c_str(), SFM_WRITE, &info));
  for (std::int64_t at = 0; file && at < kSeconds * kRate; at += kBlock) {
    // libsndfile before 1.1 cannot take more at once for Vorbis.
    const std::int64_t n = std::min(kBlock, kSeconds * kRate - at);
    if (sf_writef_short(file.get(), samples.data() + at, n) != n)
      throw RunError(fmt::format("{}: cannot be written: {}", path, sf_strerror(file.get())));
  }
  if (!file) throw RunError(fmt::format("{}: cannot be written: {}", path, sf_strerror(nullptr)));
  if (const int error = sf_close(file.release()); error != 0)
    throw RunError(fmt::format("{}: cannot be written: {}", path, sf_error_number(error)));
  std::ifstream in(path, std::ios::binary);
  std::vector<char> out{std::istreambuf_iterator<char>(in), {}};
  std::filesystem::remove(path);
  return out;
}

struct Samples16OrFloat {
  std::vector<short> narrow = std::vector<short>(kBlock);
  std::vector<float> wide = std::vector<float>(kBlock);
};

// Decodes the whole recording and returns its length [s].
double decode(const Format& format, const std::vector<char>& bytes, Samples16OrFloat& samples) {
  SoundFile sound{SoundInput(std::as_bytes(std::span(bytes)))};
  std::int64_t total = 0;
  if (sound.ok()) {
    const bool narrow = is_narrow(sound.info());
    for (std::int64_t n = 1; n > 0; total += n)
      n = narrow ? sound.read(samples.narrow.data(), kBlock)
                 : sound.read(samples.wide.data(), kBlock);
  }
  if (total < kSeconds * kRate)  // MP3 and Vorbis may return slightly more
    throw RunError(fmt::format("{}: {} of {} samples can be decoded{}", format.name, total,
                               kSeconds * kRate, sound.ok() ? "" : ": " + sound.why()));
  return static_cast<double>(kSeconds);
}

}  // namespace

std::vector<Measurement> decoding(const TemporaryFolder& folder) {
  std::vector<Measurement> out;
  for (const Format& format : kFormats) {
    Measurement m{fmt::format("decode {}, 1 core", format.name), "x real time"};
    const SF_INFO info = info_of(format);
    if (sf_format_check(&info) == 0) {
      m.why_not = "libsndfile here cannot encode it";
    } else {
      const auto bytes = std::make_shared<const std::vector<char>>(
          encoded(format, folder / (std::string("sound.") + format.ending)));
      m.run = [&format, bytes](const Slice& slice) {
        Samples16OrFloat samples;
        return rate_on(1, slice,
                       [&]() -> Work { return [&] { return decode(format, *bytes, samples); }; });
      };
    }
    out.push_back(std::move(m));
  }
  return out;
}

}  // namespace melflow
