// Blocks of one long FLAC recording, decoded on several cores and given in order.
//
// The file is cut between frames into pieces of at most a block, each of which is a FLAC file of
// its own to the decoder. Whoever asks for the next block decodes pieces himself; workers with
// nothing else to do decode the pieces behind it, each charged to the memory budget, as far as it
// has room. A piece counts only if it gives exactly the samples that the frame numbers promise, and
// nothing is wrong with it. Otherwise its first frame is where the file has to be decoded on as
// one.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>

#include "pipeline/run_context.h"
#include "stages/audio/decoders/flac_frames.h"
#include "stages/audio/decoders/sample_reader.h"

namespace melflow {

/// What is the same for all pieces of a recording.
struct AheadPlan {
  std::shared_ptr<const RawBytes> raw;  ///< a large file: not in memory
  FlacFrames frames;
  SF_INFO info{};
  Downmix downmix = Downmix::mean;
  std::int64_t block = 0;  ///< the longest piece [samples]
  std::int64_t end = 0;    ///< samples to decode; the file has as many
};

class DecodeAhead {
 public:
  struct Block {
    Buffer samples;
    std::int64_t count = 0;
  };

  /// `recordings` counts those that are being decoded like this; the `ahead` blocks that may be
  /// decoded early are shared by them. Made and used by workers of the arena that is to help.
  DecodeAhead(AheadPlan plan, int ahead, std::atomic<int>& recordings, RunContext& run);
  /// Waits for pieces that are being decoded.
  ~DecodeAhead();
  DecodeAhead(const DecodeAhead&) = delete;
  DecodeAhead& operator=(const DecodeAhead&) = delete;

  /// Nothing: there are no more, or the file has to be decoded as one.
  std::optional<Block> next();

 private:
  class Waiting;
  class Work;
  struct Helper;
  std::shared_ptr<Work> work_;
};

}  // namespace melflow
