// Pages of an Ogg file (RFC 3533). They tell its length: decoders silently skip pages with a wrong
// checksum, and stop after the first of several streams.
#pragma once

#include <cstdint>
#include <string>

#include "stages/audio/decoders/sound_decoder.h"
#include "stages/audio/decoders/sound_header.h"

namespace melflow {

/// A warning when, by its pages, a file of `size` bytes holds more samples than the `decoded` ones
/// at `rate` [Hz]; else "", also for a file that is no Ogg. Reads the whole file.
std::string ogg_remark(const ReadAt& read, std::uint64_t size, std::int64_t decoded, int rate);

/// Gives the page at byte `at`, of which bytes were replaced, the check sum of what it is now.
void correct_check_sum(SoundInput& input, std::uint64_t at);

}  // namespace melflow
