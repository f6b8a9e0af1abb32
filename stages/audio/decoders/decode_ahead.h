// Decodes one long FLAC recording on several cores, and gives its blocks in order.
//
// The file is cut between frames into pieces of at most a block; to the decoder, each piece is a
// FLAC file of its own. The thread that asks for the next block decodes pieces itself; idle workers
// decode the pieces after it as far as the memory budget has room, each with its own reservation.
// A piece is used only if it decodes without an error to exactly the samples that the frame numbers
// promise. Otherwise the rest of the file, from that piece's first frame on, has to be decoded as
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

/// A recording to be decoded in pieces.
struct AheadPlan {
  std::shared_ptr<const RawBytes> raw;  ///< the file, which is large and not in memory
  FlacFrames frames;
  SF_INFO info{};
  Downmix downmix;
  std::int64_t block = 0;                ///< the longest piece [samples]
  std::int64_t end = 0;                  ///< samples to decode; the file has at least as many
  IsolatedDecoders* isolated = nullptr;  ///< where libraries run; null: here
};

class DecodeAhead {
 public:
  struct Block {
    Buffer samples;
    std::int64_t count = 0;
    Levels levels;
  };

  /// `ahead`: blocks that may be decoded early, shared by all recordings being decoded like this,
  /// which `recordings` counts. To be made and used by workers of the arena whose idle workers
  /// help.
  DecodeAhead(AheadPlan plan, int ahead, std::atomic<int>& recordings, RunContext& run);
  /// Waits for pieces that are being decoded.
  ~DecodeAhead();
  DecodeAhead(const DecodeAhead&) = delete;
  DecodeAhead& operator=(const DecodeAhead&) = delete;

  /// The next block; nothing when there are no more, or when the rest of the file has to be decoded
  /// as one.
  std::optional<Block> next();

 private:
  class Waiting;
  class Work;
  struct Helper;
  std::shared_ptr<Work> work_;
};

}  // namespace melflow
