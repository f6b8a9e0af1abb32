// What the pages of an Ogg file (RFC 3533) say of its length: decoders pass over pages with a wrong
// check sum, and read no further than the first of several streams, without a word.
#pragma once

#include <cstdint>
#include <string>

#include "stages/audio/decoders/sound_header.h"

namespace melflow {

/// A remark when an Ogg file of `size` bytes holds more samples than the `decoded` ones at `rate`
/// [Hz], as far as its pages tell; "" for any other. Reads the whole file.
std::string ogg_remark(const ReadAt& read, std::uint64_t size, std::int64_t decoded, int rate);

}  // namespace melflow
