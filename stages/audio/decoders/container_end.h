// Where a file should end by what its container says, for remarks: decoders correct wrong sizes
// silently. Known: RIFF, RF64, BW64, AIFF, W64, AU, NIST. Others (CAF, which libsndfile refuses
// when it is cut off, VOC, IRCAM, PAF, …) promise nothing here.
#pragma once

#include <cstdint>
#include <string>

#include "stages/audio/decoders/sound_header.h"

namespace melflow {

/// The header was written before the length was known, and never completed: the size in it is 0, or
/// that of the samples is, and what follows them is no chunk.
bool is_header_unfinished(const ReadAt& read, std::uint64_t size);

/// A remark when a file of `size` bytes is cut off, or goes on behind the end that its header
/// gives, else "". Sizes of 0 and 2^32 - 1 are what programs write that do not know them yet; they
/// promise nothing.
std::string cut_off_remark(const ReadAt& read, std::uint64_t size);

}  // namespace melflow
