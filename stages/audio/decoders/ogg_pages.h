// Reads the pages of an Ogg file (RFC 3533), which tell its length: decoders silently skip pages
// with a wrong checksum, and stop after the first of several streams.
#pragma once

#include <cstdint>

#include "stages/audio/decoders/sound_decoder.h"
#include "stages/audio/decoders/sound_header.h"

namespace melflow {

/// Tells whether the pages of a file of `size` bytes hold more samples than the `decoded` ones at
/// `rate` [Hz]; no damage if the file is not Ogg. Reads the whole file.
Damage ogg_damage(const ReadAt& read, std::uint64_t size, std::int64_t decoded, int rate);

/// Corrects the checksum of the page at byte `at` after some of its bytes were replaced.
void correct_check_sum(SoundInput& input, std::uint64_t at);

}  // namespace melflow
