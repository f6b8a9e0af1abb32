// Where decoded audio is kept from one use to the next, and how it gets there. The source asks it
// for every file it lists; keep_audio fills it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "pipeline/stage_abilities.h"
#include "stages/audio/store/stored_audio.h"
#include "stages/manifest.h"

namespace melflow {

class AudioStore {
 public:
  /// The samples of one file on their way into the store. What is not closed is not stored.
  class Entry {
   public:
    Entry() = default;
    Entry(const Entry&) = delete;
    Entry& operator=(const Entry&) = delete;
    virtual ~Entry() = default;
    /// The blocks of the file, in order. False: there is no room for it.
    virtual bool add(const Waveform& block) = 0;
    /// After the last block: the file is good.
    virtual void close() = 0;
  };

  AudioStore() = default;
  AudioStore(const AudioStore&) = delete;
  AudioStore& operator=(const AudioStore&) = delete;
  virtual ~AudioStore() = default;

  /// What is stored of source item `index` with this stamp, or null. From any thread.
  virtual std::shared_ptr<const StoredAudio> find(std::size_t index, const FileStamp& stamp) = 0;
  /// From any thread. Null: the store takes nothing more.
  virtual std::unique_ptr<Entry> begin(std::size_t index, RunContext& run) = 0;

  /// True: it is filled by a pass of its own before the run proper (FillingPass).
  [[nodiscard]] virtual bool begin_filling(Filling& /*filling*/) { return false; }
  virtual void filled() {}
  /// After the last item.
  virtual void finish(RunContext& /*run*/) {}
  /// For the report.
  [[nodiscard]] virtual std::vector<std::pair<std::string, Value>> summary() const = 0;
};

}  // namespace melflow
