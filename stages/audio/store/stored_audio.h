// The stored samples of a decoded file, in memory or in a cache file. decode gives them as blocks
// like those that it would make, without a copy.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "pipeline/stage/stage_kinds.h"
#include "stages/items.h"

namespace melflow {

class StoredAudio {
 public:
  struct Info {
    SampleType type = SampleType::float32;
    int sample_rate = 0;     ///< of the samples, resampled where the graph does that [Hz]
    std::int64_t count = 0;  ///< samples, at least one
    FileAudio file;          ///< rate and length of the file itself, from its last block
  };
  explicit StoredAudio(const Info& info) : info_(info) {}
  StoredAudio(const StoredAudio&) = delete;
  StoredAudio& operator=(const StoredAudio&) = delete;
  virtual ~StoredAudio() = default;

  [[nodiscard]] const Info& info() const { return info_; }
  /// Whether every sample is as it was stored. May read them all; called before the first is used.
  [[nodiscard]] virtual bool verify() const = 0;
  /// Adjacent samples from `start` on: at least one, at most `most`.
  [[nodiscard]] virtual Samples at(std::int64_t start, std::int64_t most) const = 0;

 private:
  Info info_;
};

/// Gives the blocks of a file with stored audio, of at most `block` bytes each. Null when the
/// stored samples are damaged.
std::unique_ptr<Expand<RawBytes, Waveform>::Cursor> stored_blocks(
    const std::shared_ptr<const RawBytes>& raw, std::size_t block);

/// Opens the file itself, to be read piece by piece, for samples that the store cannot give.
Result<std::shared_ptr<const RawBytes>> read_again(const RawBytes& raw, BufferPool& pool);

}  // namespace melflow
