// Checks the length of an Ogg file (RFC 3533) by its pages: decoders silently skip pages with a
// wrong checksum, and stop after the first of several streams.
#pragma once

#include <cstdint>
#include <string>

#include "stages/audio/decoders/sound_header.h"

namespace melflow {

/// A remark when, by its pages, a file of `size` bytes holds more samples than the `decoded` ones
/// at `rate` [Hz]; else "", also for a file that is no Ogg. Reads the whole file.
std::string ogg_remark(const ReadAt& read, std::uint64_t size, std::int64_t decoded, int rate);

}  // namespace melflow
