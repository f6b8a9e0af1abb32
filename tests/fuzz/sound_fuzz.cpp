// Feeds any bytes as a sound file, for libFuzzer (long/fuzz.sh): its header, the ends of its
// container and its pages, and its samples, which depend neither on the number requested at once,
// nor on whether the file is in memory or read through a window.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

#include "stages/audio/decoders/container_end.h"
#include "stages/audio/decoders/sample_reader.h"
#include "stages/files/unique_fd.h"

namespace {

using namespace melflow;

constexpr std::int64_t kMost =
    1 << 16;  // samples per file: a few bytes may promise hours of silence

// Returns the first samples, read `step` at a time.
std::vector<std::byte> samples_of(SoundFile sound, std::int64_t step) {
  std::vector<std::byte> out;
  if (!sound.ok() || sound.info().samplerate <= 0 || sound.info().channels <= 0) return out;
  SampleReader reader(std::move(sound), {});
  const std::size_t size = size_of(reader.type());
  std::vector<std::byte> block(static_cast<std::size_t>(step) * size);
  for (std::int64_t left = kMost; left > 0;) {
    const std::int64_t n = reader.read(block.data(), std::min(step, left));
    if (n <= 0) break;
    if (n > std::min(step, left)) std::abort();
    out.insert(out.end(), block.begin(), block.begin() + n * static_cast<std::int64_t>(size));
    left -= n;
  }
  return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::span bytes(reinterpret_cast<const std::byte*>(data), size);
  const ReadAt read = [bytes](std::uint64_t at, std::span<std::byte> out) {
    const std::size_t n =
        at >= bytes.size() ? 0 : std::min<std::size_t>(out.size(), bytes.size() - at);
    if (n > 0) std::memcpy(out.data(), bytes.data() + at, n);
    return n;
  };
  static_cast<void>(why_not_sound(read));
  static_cast<void>(cut_off(read, size));
  static_cast<void>(is_header_unfinished(read, size));
  if (const auto plain = plain_samples(read, size))
    if (plain->count < 0 || plain->offset + 2 * static_cast<std::uint64_t>(plain->count) > size)
      std::abort();
  const UniqueFd file(memfd_create("sound", MFD_CLOEXEC));
  if (!file || write(file.get(), data, size) != static_cast<ssize_t>(size)) std::abort();
  const auto whole = samples_of(SoundFile(SoundInput(bytes)), kMost);
  if (whole != samples_of(SoundFile(SoundInput(file.get(), size, 4096)), 1000)) std::abort();
  return 0;
}
