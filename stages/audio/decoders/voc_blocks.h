// Reads the blocks of Creative's VOC: a kind (one byte), a size (three) and that many bytes, up to
// a block of kind 0. A recording may be in many: FFmpeg writes one for each packet, of which
// libsndfile reads the first.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "stages/audio/decoders/sound_header.h"

namespace melflow {

struct VocBlocks {
  std::uint64_t begin = 0, end = 0;  ///< from the first to behind the last sample [bytes], by sizes
  std::size_t count = 0;             ///< of blocks that are heard
  bool are_alike = true;    ///< all are samples of one format; false: some are silence or repeated
  std::int64_t frames = 0;  ///< in blocks of samples; 0: not known, as they are compressed
  bool has_end = false;     ///< whether the block that ends the file is there
};

/// Returns nothing if it is no VOC, or has no samples.
std::optional<VocBlocks> voc_blocks(const ReadAt& read);

}  // namespace melflow
