// The blocks of one recording for decode: mono samples in order, at most so many bytes at a time.
//
// In:  RawBytes, in memory or open.
// Out: Waveform blocks. 16-bit (and 8-bit, A-law, mu-law) mono samples stay int16, everything else
//      becomes float32 in -1 .. 1. A recording that cannot be decoded ends with an ItemError.
//
// Nothing is allocated by what a header claims: blocks are bounded, and samples are counted as
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

namespace melflow {

using BlockCursor = Expand<RawBytes, Waveform>::Cursor;

struct BlockSize {
  std::size_t bytes = 0;      ///< at most
  std::int64_t multiple = 0;  ///< of so many samples, where a block holds as many; 0: any number
};

/// Where it is noted that a library is at the file.
struct NotedFile {
  std::shared_ptr<UnderWay> in;  ///< null: nowhere
  std::uint64_t file = 0;
};

/// Decodes `sound`, which reads from `raw`, to mono by `downmix`, into blocks of size `block`, the
/// last one less. `options` must stay as long as the blocks are asked for.
std::unique_ptr<BlockCursor> decoded_blocks(std::shared_ptr<const RawBytes> raw, SoundFile sound,
                                            const DecodeOptions& options, Downmix downmix,
                                            BlockSize block, NotedFile noted);

/// One block of the samples that lie in the bytes of `raw`, which is in memory, as they are:
/// nothing is copied, and the block keeps the bytes.
std::unique_ptr<BlockCursor> plain_block(std::shared_ptr<const RawBytes> raw,
                                         const PlainSamples& samples);

}  // namespace melflow
