// The stored samples of a decoded file, in memory or in a cache file, and the interface of stores
// that keep them for later uses. decode yields them in blocks like those of a file, without a copy.
// The source asks the store for every file that it lists; keep_audio fills it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "pipeline/stage/stage_abilities.h"
#include "pipeline/stage/stage_kinds.h"
#include "stages/items.h"
#include "stages/manifest.h"

namespace melflow {

class StoredAudio {
 public:
  struct Info {
    SampleType type = SampleType::float32;
    int sample_rate = 0;     ///< of the samples, after resampling in the graph [Hz]
    std::int64_t count = 0;  ///< samples, at least one
    FileAudio file;          ///< rate and length of the file itself, from its last block
  };
  explicit StoredAudio(const Info& info) : info_(info) {}
  StoredAudio(const StoredAudio&) = delete;
  StoredAudio& operator=(const StoredAudio&) = delete;
  virtual ~StoredAudio() = default;

  [[nodiscard]] const Info& info() const { return info_; }
  /// Whether every sample is unchanged. May read them all; called before the first is used.
  [[nodiscard]] virtual bool verify() const = 0;
  /// Adjacent samples from `start` on: at least one, at most `most`.
  [[nodiscard]] virtual Samples at(std::int64_t start, std::int64_t most) const = 0;

 private:
  Info info_;
};

/// Makes a cursor over the blocks of a file with stored audio, of at most `block` bytes each.
/// `is_mean`: whether several channels are mixed. Null if the stored samples are damaged.
std::unique_ptr<Expand<RawBytes, Waveform>::Cursor> stored_blocks(
    const std::shared_ptr<const RawBytes>& raw, std::size_t block, bool is_mean);

/// Opens the file itself, to be read in pieces, for samples that the store cannot provide.
Result<std::shared_ptr<const RawBytes>> read_again(const RawBytes& raw, BufferPool& pool);

class AudioStore {
 public:
  /// Takes the samples of one file into the store. An entry that is not closed is not stored.
  class Entry {
   public:
    Entry() = default;
    Entry(const Entry&) = delete;
    Entry& operator=(const Entry&) = delete;
    virtual ~Entry() = default;
    /// Adds the next block of the file, in order. Returns false if there is no room for it.
    virtual bool add(const Waveform& block) = 0;
    /// Stores the entry; called after the last block of a file without faults.
    virtual void close() = 0;
  };

  AudioStore() = default;
  AudioStore(const AudioStore&) = delete;
  AudioStore& operator=(const AudioStore&) = delete;
  virtual ~AudioStore() = default;

  /// The stored audio of source item `index` if the file had this stamp, else null. May be called
  /// from any thread.
  virtual std::shared_ptr<const StoredAudio> find(std::size_t index, const FileStamp& stamp) = 0;
  /// Begins an entry for source item `index`; null if the store is full. From any thread.
  virtual std::unique_ptr<Entry> begin(std::size_t index, RunContext& run) = 0;

  /// Whether a pass of its own fills the store before the main run (FillingPass).
  [[nodiscard]] virtual bool begin_filling(Filling& /*filling*/) { return false; }
  virtual void filled() {}
  /// Completes the store after the last item.
  virtual void finish(RunContext& /*run*/) {}
  /// Names and values that the report shows for the store.
  [[nodiscard]] virtual std::vector<std::pair<std::string, Value>> summary() const = 0;
};

}  // namespace melflow
