// Finds where a file should end according to its container, to warn about wrong sizes, which
// decoders correct silently, and about a recording that differs in length from its header. Handles
// RIFF, RF64, BW64, AIFF, W64, CAF, AU, NIST, VOC and SVX; other containers (IRCAM, PAF, PVF, AVR,
// …) are not checked.
#pragma once

#include <sndfile.h>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>

#include "stages/audio/decoders/sample_reader.h"
#include "stages/audio/decoders/sound_decoder.h"
#include "stages/audio/decoders/sound_header.h"

namespace melflow {

/// Whether the header was written before the length was known and never completed: the size in it,
/// or the size of the samples, is 0, and no chunk follows the samples.
bool is_header_unfinished(const ReadAt& read, std::uint64_t size);

/// The size of the whole file by the header of RIFF or a related format; nullopt if it does not
/// say.
std::optional<std::uint64_t> stated_size(const ReadAt& read);

/// The bytes of the samples by the header; nullopt if it does not say.
std::optional<std::uint64_t> samples_size(const ReadAt& read);

/// Tells whether a file of `size` bytes is cut off, continues after the end that its header states,
/// or has anything but chunks after its samples (their size in the header is too small). Sizes of 0
/// and 2^32 - 1, which programs write before they know the size, count as unknown.
/// With a size near 2^31, as programs write to a pipe, nothing is known to be lost.
Damage cut_off(const ReadAt& read, std::uint64_t size);

/// What the header of a WAV, RF64 or W64 with PCM says of a frame's bytes, in contradiction to its
/// channels and bits; decoders believe the bits.
struct FrameSize {
  std::string remark;       ///< names both numbers; "" where they agree
  bool is_unknown = false;  ///< it says 0: nothing that contradicts the bits
};
FrameSize wrong_frame_size(const ReadAt& read);

struct EndedRecording {
  const SF_INFO& info;  ///< by its header
  bool is_count_known;  ///< whether the header states the number of samples
  bool is_over;         ///< whether the file has no more samples; false: decoding stopped before
  std::int64_t wanted = std::numeric_limits<std::int64_t>::max();  ///< samples used of it at most
};

/// Tells what is wrong with the recording, where, and how much of what is wanted is lost. `bytes`
/// reads the file, which has `size` bytes.
Damage damage_of(const EndedRecording& recording, const SampleReader& reader, const ReadAt& bytes,
                 std::uint64_t size);

}  // namespace melflow
