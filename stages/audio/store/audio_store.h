// The interface of stores that keep decoded audio from one use to the next. The source asks the
// store for every file that it lists; keep_audio fills it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "pipeline/stage/stage_abilities.h"
#include "stages/audio/store/stored_audio.h"
#include "stages/manifest.h"

namespace melflow {

class AudioStore {
 public:
  /// Takes the samples of one file into the store. An entry that is not closed is not stored.
  class Entry {
   public:
    Entry() = default;
    Entry(const Entry&) = delete;
    Entry& operator=(const Entry&) = delete;
    virtual ~Entry() = default;
    /// Adds the next block of the file, in order. False: there is no room for it.
    virtual bool add(const Waveform& block) = 0;
    /// Stores the entry; to be called after the last block of a file that is good.
    virtual void close() = 0;
  };

  AudioStore() = default;
  AudioStore(const AudioStore&) = delete;
  AudioStore& operator=(const AudioStore&) = delete;
  virtual ~AudioStore() = default;

  /// The stored audio of source item `index` if the file had this stamp, else null. From any
  /// thread.
  virtual std::shared_ptr<const StoredAudio> find(std::size_t index, const FileStamp& stamp) = 0;
  /// Begins an entry for source item `index`; null when the store takes no more. From any thread.
  virtual std::unique_ptr<Entry> begin(std::size_t index, RunContext& run) = 0;

  /// Whether the store is filled by a pass of its own before the run proper (FillingPass).
  [[nodiscard]] virtual bool begin_filling(Filling& /*filling*/) { return false; }
  virtual void filled() {}
  /// Completes the store after the last item.
  virtual void finish(RunContext& /*run*/) {}
  /// What the report says of the store.
  [[nodiscard]] virtual std::vector<std::pair<std::string, Value>> summary() const = 0;
};

}  // namespace melflow
