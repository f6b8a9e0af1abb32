// Computes rows of recordings, or of all utterances of each, on threads of its own, and keeps them
// in memory, within a limit and the available memory; the least recently used are dropped first.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <future>
#include <list>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "apps/calls/stage_chain.h"
#include "apps/python/process.h"
#include "pipeline/run/workers.h"

namespace melflow {

/// Thread-safe.
class RecordingStore final : public EndsWithPython {
 public:
  using Rows = std::shared_ptr<const StageChain::Recording>;
  using Coming = std::shared_future<Rows>;  ///< rethrows what computing them threw
  /// `limit`: the most memory for rows [bytes]. `make` computes those of a recording.
  RecordingStore(std::uint64_t limit, int workers, std::function<Rows(std::size_t)> make);
  ~RecordingStore();
  void stop() override;

  /// Returns the rows of a recording, which are kept, on their way, or computed from now on, in the
  /// order of requests. Without threads this one computes them.
  [[nodiscard]] Coming get(std::size_t recording);
  /// Starts computing the rows of a recording, if there are threads.
  void prefetch(std::size_t recording);
  /// Likewise computes rows that are not to be kept.
  [[nodiscard]] Coming compute(std::function<Rows()> make);
  /// Whether it keeps these rows now.
  [[nodiscard]] bool has(std::size_t recording) const;
  [[nodiscard]] std::uint64_t limit() const { return limit_; }
  [[nodiscard]] std::uint64_t bytes() const;
  /// The rows that fit within the limit and the memory available now [bytes].
  [[nodiscard]] std::uint64_t storable() const;
  [[nodiscard]] std::uint64_t made() const;  ///< how often all rows of a recording were computed

 private:
  struct Entry {
    std::size_t recording = 0;
    Coming rows;
    std::uint64_t bytes = 0;
  };
  // With the mutex held.
  [[nodiscard]] bool has_threads() const { return !is_stopping_ && workers_->count() > 1; }
  void run(std::packaged_task<Rows()> task);
  [[nodiscard]] Rows make(std::size_t recording);
  void keep(std::size_t recording, Coming coming, const StageChain::Recording& rows);
  void shrink(std::uint64_t to);

  const std::uint64_t limit_;
  const std::function<Rows(std::size_t)> make_;
  mutable std::mutex mutex_;  // guards the members below
  std::list<Entry> entries_;  // most recently used first
  std::unordered_map<std::size_t, std::list<Entry>::iterator> places_;
  std::unordered_map<std::size_t, Coming> coming_;
  std::uint64_t bytes_ = 0, made_ = 0;
  std::uint64_t until_look_ = 0;  // available memory is checked after this many more bytes
  int queued_ = 0;                // tasks that the workers have not ended yet
  Condition ended_{new std::condition_variable};
  std::unique_ptr<Workers> workers_;  // has threads until `is_stopping_`
  bool is_stopping_ = false;
};

}  // namespace melflow
