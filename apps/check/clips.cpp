#include "apps/check/clips.h"

#include <sndfile.h>
#include <sys/mman.h>
#include <unistd.h>
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#include "apps/report/data_url.h"
#include "stages/audio/decoders/sound_file.h"
#include "stages/audio/reading/file_reader.h"
#include "stages/containers/container.h"

namespace melflow {
namespace {

constexpr std::size_t kWindow = 64 * 1024;  // [bytes]

// FLAC of these samples [frames, channels]; "" where its encoder refuses them.
std::string flac(const std::vector<float>& samples, int channels, int rate) {
  const UniqueFd file(memfd_create("clip", MFD_CLOEXEC));
  if (!file) return {};
  SF_INFO info{};
  info.samplerate = rate;
  info.channels = channels;
  info.format = SF_FORMAT_FLAC | SF_FORMAT_PCM_16;
  SNDFILE* out = sf_open_fd(file.get(), SFM_WRITE, &info, SF_FALSE);
  if (out == nullptr) return {};
  sf_command(out, SFC_SET_CLIPPING, nullptr, SF_TRUE);
  const auto count = static_cast<sf_count_t>(samples.size());
  const bool is_written = sf_write_float(out, samples.data(), count) == count;
  const off_t end = sf_close(out) == 0 && is_written ? lseek(file.get(), 0, SEEK_END) : 0;
  std::string bytes(static_cast<std::size_t>(std::max<off_t>(end, 0)), '\0');
  return pread(file.get(), bytes.data(), bytes.size(), 0) == end ? bytes : "";
}

}  // namespace

Clip read_clip(const std::string& path, double begin, double seconds) {
  Clip out;
  const FileRef file = located(path);
  if (file.container || (file.part && file.part->is_deflated)) {
    out.why = "it is in no file that can be read in parts";
    return out;
  }
  const FileReader reader({kWindow, 0, true, Advise::none});
  int error = 0;
  const UniqueFd fd = reader.open(FileReader::file_of(file), error);
  if (!fd) {
    out.why = std::strerror(error);
    return out;
  }
  SoundFile sound(SoundInput(fd.get(), file.part ? file.part->begin : 0, file.size, kWindow));
  if (!sound.ok()) {
    out.why = sound.why();
    return out;
  }
  const SF_INFO& info = sound.info();
  out.sample_rate = info.samplerate;
  out.channels = std::min(info.channels, kMostChannels);
  const auto all = static_cast<std::size_t>(info.channels),
             kept = static_cast<std::size_t>(out.channels);
  const auto first = static_cast<std::int64_t>(std::max(0.0, begin) * info.samplerate);
  const auto last = first + static_cast<std::int64_t>(std::ceil(seconds * info.samplerate));
  constexpr std::int64_t kPiece = 16384;  // [frames]
  std::vector<float> piece(static_cast<std::size_t>(kPiece) * all), samples;
  for (std::int64_t at = 0; at < last;) {
    const std::int64_t n = sound.read(piece.data(), std::min(kPiece, last - at));
    if (n <= 0) break;
    for (std::int64_t i = std::max<std::int64_t>(0, first - at); i < n; ++i)
      for (std::size_t c = 0; c < kept; ++c) {
        const float value = piece[static_cast<std::size_t>(i) * all + c];
        samples.push_back(std::isfinite(value) ? value : 0);
      }
    at += n;
  }
  if (samples.empty()) {
    out.why = "it is shorter now";
    return out;
  }
  out.begin = static_cast<double>(first) / info.samplerate;
  out.seconds = static_cast<double>(samples.size() / kept) / info.samplerate;
  const std::string bytes = flac(samples, out.channels, info.samplerate);
  if (bytes.empty())
    out.why = "FLAC cannot hold its sample rate";
  else
    out.url = data_url("audio/flac", bytes);
  return out;
}

}  // namespace melflow
