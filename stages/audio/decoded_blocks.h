// Yields the blocks of one recording for decode: mono samples in order, of limited size.
//
// In:  RawBytes, in memory or open.
// Out: Waveform blocks. 16-bit (and 8-bit, A-law, mu-law) mono samples stay int16, everything else
//      becomes float32 in -1 .. 1. A recording that cannot be decoded ends with an ItemError.
//
// Allocations do not depend on the header's claims: blocks are bounded, and samples are counted as
// they are read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "pipeline/stage/stage_kinds.h"
#include "stages/audio/decode_options.h"
#include "stages/audio/decoders/sound_file.h"
#include "stages/audio/decoders/sound_header.h"
#include "stages/files/under_way.h"
#include "stages/items.h"
#include "stages/sample_meter.h"

namespace melflow {

using BlockCursor = Expand<RawBytes, Waveform>::Cursor;

struct BlockSize {
  std::size_t bytes = 0;      ///< at most
  std::int64_t multiple = 0;  ///< of which a full block is a multiple [samples]; 0: any
};

/// Where to note that a library is reading the file.
struct NotedFile {
  std::shared_ptr<UnderWay> in;  ///< null: nowhere
  std::uint64_t file = 0;
};

/// Decodes `sound`, which reads from `raw`, to mono by `downmix`, into blocks of size `block`; the
/// last one may be smaller. `options` must outlive the blocks;
/// `meter` may be null.
std::unique_ptr<BlockCursor> decoded_blocks(std::shared_ptr<const RawBytes> raw, SoundFile sound,
                                            const DecodeOptions& options, Downmix downmix,
                                            BlockSize block, NotedFile noted,
                                            std::unique_ptr<SampleMeter> meter);

/// Returns one block of samples that lie unchanged in the bytes of `raw`, which is in memory:
/// nothing is copied, and the block keeps the bytes.
std::unique_ptr<BlockCursor> plain_block(std::shared_ptr<const RawBytes> raw,
                                         const PlainSamples& samples,
                                         std::unique_ptr<SampleMeter> meter);

}  // namespace melflow
