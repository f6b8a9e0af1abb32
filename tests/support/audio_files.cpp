#include "tests/support/audio_files.h"

#include <sndfile.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <random>
#include <stdexcept>

#include "tests/support/temp_folder.h"

namespace melflow::test {
namespace {

constexpr std::array kinds{
    AudioKind{"wav u8", "wav", SF_FORMAT_WAV | SF_FORMAT_PCM_U8, 1, true, true},
    AudioKind{"wav s16", "wav", SF_FORMAT_WAV | SF_FORMAT_PCM_16, 1, true, true},
    AudioKind{"wav s24", "wav", SF_FORMAT_WAV | SF_FORMAT_PCM_24, 1, false, true},
    AudioKind{"wav s32", "wav", SF_FORMAT_WAV | SF_FORMAT_PCM_32, 1, false, true},
    AudioKind{"wav float", "wav", SF_FORMAT_WAV | SF_FORMAT_FLOAT, 1, false, true},
    AudioKind{"wav double", "wav", SF_FORMAT_WAV | SF_FORMAT_DOUBLE, 1, false, true},
    AudioKind{"wav ulaw", "wav", SF_FORMAT_WAV | SF_FORMAT_ULAW, 1, true, true},
    AudioKind{"wav alaw", "wav", SF_FORMAT_WAV | SF_FORMAT_ALAW, 1, true, true},
    AudioKind{"wav ima adpcm", "wav", SF_FORMAT_WAV | SF_FORMAT_IMA_ADPCM, 1, false, false},
    AudioKind{"wav gsm", "wav", SF_FORMAT_WAV | SF_FORMAT_GSM610, 1, false, false},
    AudioKind{"wavex s16", "wav", SF_FORMAT_WAVEX | SF_FORMAT_PCM_16, 1, true, true},
    AudioKind{"wav s16 stereo", "wav", SF_FORMAT_WAV | SF_FORMAT_PCM_16, 2, false, true},
    AudioKind{"wav float stereo", "wav", SF_FORMAT_WAV | SF_FORMAT_FLOAT, 2, false, true},
    AudioKind{"wav ulaw stereo", "wav", SF_FORMAT_WAV | SF_FORMAT_ULAW, 2, false, true},
    AudioKind{"wav s24 5 channels", "wav", SF_FORMAT_WAV | SF_FORMAT_PCM_24, 5, false, true},
    // libsndfile reads the padding byte after an odd count as a sample.
    AudioKind{"aiff s8", "aiff", SF_FORMAT_AIFF | SF_FORMAT_PCM_S8, 1, true, false},
    AudioKind{"aiff s16", "aiff", SF_FORMAT_AIFF | SF_FORMAT_PCM_16, 1, true, true},
    AudioKind{"aiff s24 stereo", "aif", SF_FORMAT_AIFF | SF_FORMAT_PCM_24, 2, false, true},
    AudioKind{"au s16", "au", SF_FORMAT_AU | SF_FORMAT_PCM_16, 1, true, true},
    AudioKind{"caf s16", "caf", SF_FORMAT_CAF | SF_FORMAT_PCM_16, 1, true, true},
    AudioKind{"caf alac", "caf", SF_FORMAT_CAF | SF_FORMAT_ALAC_16, 1, false, true},
    AudioKind{"w64 s16", "w64", SF_FORMAT_W64 | SF_FORMAT_PCM_16, 1, true, true},
    AudioKind{"rf64 s16", "rf64", SF_FORMAT_RF64 | SF_FORMAT_PCM_16, 1, true, true},
    AudioKind{"flac s16", "flac", SF_FORMAT_FLAC | SF_FORMAT_PCM_16, 1, true, true},
    AudioKind{"flac s24", "flac", SF_FORMAT_FLAC | SF_FORMAT_PCM_24, 1, false, true},
    AudioKind{"flac s16 stereo", "flac", SF_FORMAT_FLAC | SF_FORMAT_PCM_16, 2, false, true},
    AudioKind{"ogg vorbis", "ogg", SF_FORMAT_OGG | SF_FORMAT_VORBIS, 1, false, false},
    AudioKind{"ogg vorbis stereo", "ogg", SF_FORMAT_OGG | SF_FORMAT_VORBIS, 2, false, false},
    AudioKind{"ogg opus", "opus", SF_FORMAT_OGG | SF_FORMAT_OPUS, 1, false, false},
    AudioKind{"mp3", "mp3", SF_FORMAT_MPEG | SF_FORMAT_MPEG_LAYER_III, 1, false, false},
    AudioKind{"mp3 stereo", "mp3", SF_FORMAT_MPEG | SF_FORMAT_MPEG_LAYER_III, 2, false, false},
};

class File {
 public:
  File(const std::string& path, int mode, SF_INFO& info)
      : handle_(sf_open(path.c_str(), mode, &info)) {
    if (handle_ == nullptr)
      throw std::runtime_error("libsndfile: " + path + ": " + sf_strerror(nullptr));
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  ~File() { sf_close(handle_); }
  [[nodiscard]] SNDFILE* get() const { return handle_; }

 private:
  SNDFILE* handle_;
};

void put_le32(std::string& bytes, std::size_t at, std::uint32_t value) {
  for (int i = 0; i < 4; ++i) bytes.at(at + i) = static_cast<char>(value >> (8 * i));
}

// Reads all frames of an open file, however many there are; the header is not trusted.
template <class T, class Read>
std::vector<T> read_all(int channels, Read&& read) {
  std::vector<T> all;
  std::vector<T> piece(static_cast<std::size_t>(channels) << 20);
  for (sf_count_t n; (n = read(piece.data(), sf_count_t{1} << 20)) > 0;)
    all.insert(all.end(), piece.begin(), piece.begin() + n * channels);
  return all;
}

}  // namespace

std::span<const AudioKind> audio_kinds() { return kinds; }

const AudioKind& audio_kind(const std::string& name) {
  for (const AudioKind& kind : kinds)
    if (kind.name == name) return kind;
  throw std::runtime_error("there is no kind of audio file " + name);
}

std::vector<float> test_signal(std::int64_t frames, int channels, unsigned seed) {
  std::vector<float> out(static_cast<std::size_t>(frames) * static_cast<std::size_t>(channels));
  for (int c = 0; c < channels; ++c) {
    std::mt19937 random(seed * 977 + static_cast<unsigned>(c));
    std::array<double, 3> phase{}, step{};
    for (double& s : step) s = 0.01 + 0.4 * static_cast<double>(random()) / 4294967296.0;
    const double glide = 1.0 + 1e-6 * static_cast<double>(random() % 64);
    for (std::int64_t i = 0; i < frames; ++i) {
      double value = 0.1 * (static_cast<double>(random()) / 2147483648.0 - 1.0);
      for (std::size_t t = 0; t < phase.size(); ++t) {
        value += 0.22 * std::sin(phase[t]);
        phase[t] += step[t];
        if (phase[t] > 2 * std::numbers::pi) phase[t] -= 2 * std::numbers::pi;
        step[t] = step[t] < 1.5 ? step[t] * glide : 0.02;
      }
      out[static_cast<std::size_t>(i * channels + c)] = static_cast<float>(value);
    }
  }
  return out;
}

void write_audio(const std::string& path, const AudioKind& kind, int sample_rate,
                 std::span<const float> interleaved) {
  SF_INFO info{};
  info.samplerate = sample_rate;
  info.channels = kind.channels;
  info.format = kind.format;
  const File file(path, SFM_WRITE, info);
  const auto frames = static_cast<sf_count_t>(interleaved.size()) / kind.channels;
  if (sf_writef_float(file.get(), interleaved.data(), frames) != frames)
    throw std::runtime_error("libsndfile: " + path + ": " + sf_strerror(file.get()));
}

void write_wav(const std::string& path, std::int64_t frames, int sample_rate, unsigned seed) {
  write_audio(path, audio_kind("wav s16"), sample_rate, test_signal(frames, 1, seed));
}

void write_vbr_mp3(const std::string& path, int sample_rate, std::span<const float> samples) {
  SF_INFO info{};
  info.samplerate = sample_rate;
  info.channels = 1;
  info.format = SF_FORMAT_MPEG | SF_FORMAT_MPEG_LAYER_III;
  const File file(path, SFM_WRITE, info);
  int mode = SF_BITRATE_MODE_VARIABLE;
  sf_command(file.get(), SFC_SET_BITRATE_MODE, &mode, sizeof(mode));
  if (sf_writef_float(file.get(), samples.data(), static_cast<sf_count_t>(samples.size())) == 0)
    throw std::runtime_error("libsndfile: " + path + ": " + sf_strerror(file.get()));
}

std::string without_xing_frame(const std::string& mp3) {
  std::size_t at = mp3.find("Xing");
  if (at == std::string::npos) at = mp3.find("Info");
  if (at == std::string::npos) throw std::runtime_error("without_xing_frame: there is none");
  // The next frame begins with the same twelve bits of synchronisation and version.
  const std::string sync = mp3.substr(mp3.rfind('\xFF', at), 2);
  return mp3.substr(mp3.find(sync, at));
}

ReadAudio read_audio(const std::string& path) {
  ReadAudio out;
  SF_INFO info{};
  {
    const File file(path, SFM_READ, info);
    out.interleaved = read_all<float>(
        info.channels, [&](float* to, sf_count_t n) { return sf_readf_float(file.get(), to, n); });
  }
  out.sample_rate = info.samplerate;
  out.channels = info.channels;
  out.promised = info.frames;
  info = {};
  const File file(path, SFM_READ, info);
  out.int16 = read_all<std::int16_t>(info.channels, [&](std::int16_t* to, sf_count_t n) {
    return sf_readf_short(file.get(), to, n);
  });
  return out;
}

void copy_truncated(const std::string& from, const std::string& to, std::int64_t bytes) {
  std::string all = read_bytes(from);
  const auto size = static_cast<std::int64_t>(all.size());
  all.resize(static_cast<std::size_t>(
      std::clamp<std::int64_t>(bytes < 0 ? size + bytes : bytes, 0, size)));
  write_bytes(to, all);
}

void set_wav_sizes(std::string& bytes, std::uint32_t riff_size, std::uint32_t data_size) {
  const std::size_t data = bytes.find("data", 12);
  if (!bytes.starts_with("RIFF") || data == std::string::npos)
    throw std::runtime_error("set_wav_sizes: no RIFF WAV");
  put_le32(bytes, 4, riff_size);
  put_le32(bytes, data + 4, data_size);
}

void set_flac_total(std::string& bytes, std::uint64_t samples) {
  // STREAMINFO is the first metadata block; its bits 108 to 143 are the count (RFC 9639, 8.2).
  if (!bytes.starts_with("fLaC")) throw std::runtime_error("set_flac_total: no FLAC");
  constexpr std::size_t at = 8 + 13;
  auto& high = bytes.at(at);
  high = static_cast<char>((static_cast<unsigned char>(high) & 0xF0U) | ((samples >> 32) & 0x0FU));
  for (std::size_t i = 0; i < 4; ++i)
    bytes.at(at + 1 + i) = static_cast<char>(samples >> (24 - 8 * i));
}

}  // namespace melflow::test
