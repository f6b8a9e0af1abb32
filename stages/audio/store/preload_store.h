// Keeps all decoded audio in memory; filled before anything is computed from it.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "stages/audio/store/feed_choice.h"
#include "stages/audio/store/stored_audio.h"
#include "stages/split_times.h"

namespace melflow {

/// How to treat files that do not fit into memory: end the run, or stream them.
enum class PreloadOverflow { refuse, stream };

class LoadedAudio;

class PreloadStore final : public AudioStore {
 public:
  /// Takes up to Filling::memory bytes of run.budget. begin_filling() throws RunError where
  /// `expected` is clearly more and nothing may overflow.
  PreloadStore(RunContext& run, const ManifestSource& files, PreloadOverflow overflow,
               ExpectedAudio expected);

  std::shared_ptr<const StoredAudio> find(std::size_t index, const FileStamp& stamp) override;
  std::unique_ptr<Entry> begin(std::size_t index, RunContext& run) override;
  [[nodiscard]] bool begin_filling(Filling& filling) override;
  void filled() override;
  [[nodiscard]] std::vector<std::pair<std::string, Value>> summary() const override;

 private:
  class Loading;

  // Returns memory for `bytes`, or null if none is left. Throws RunError if that ends the run.
  std::byte* take(std::size_t bytes);
  [[nodiscard]] bool add_slab(std::size_t bytes);
  [[nodiscard]] std::string refusal() const;
  [[nodiscard]] std::string advice(double all) const;
  void check_expected() const;

  const ManifestSource& files_listed_;
  const PreloadOverflow overflow_;
  const ExpectedAudio expected_;
  MemoryBudget& budget_;
  BufferPool& pool_;
  Filling* filling_ = nullptr;  // from begin_filling() to filled()
  std::size_t limit_ = 0;       // [bytes]
  std::size_t slab_size_ = 0;   // [bytes]

  mutable std::mutex mutex_;
  // Memory is leased in slabs: a separate lease for every file would waste a part of each.
  std::vector<std::shared_ptr<const Reservation>> reservations_;
  std::vector<Buffer> slabs_;
  std::size_t taken_ = 0;                                  // by all slabs [bytes]
  std::byte *free_begin_ = nullptr, *free_end_ = nullptr;  // of the newest slab
  std::size_t files_ = 0, bytes_ = 0;
  std::unique_ptr<SplitTimes> split_times_;  // where there are splits

  std::vector<std::shared_ptr<const LoadedAudio>> audio_;  // by source item
  std::atomic<bool> is_full_{false}, is_filled_{false};
};

}  // namespace melflow
