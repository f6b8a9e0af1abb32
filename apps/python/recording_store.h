// Keeps computed rows of recordings, or of all utterances of each, in memory, within a limit and
// the available memory; the least recently used are dropped first.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <unordered_set>

#include "apps/python/process.h"
#include "apps/python/stage_chain.h"

namespace melflow {

class RecordingStore {
 public:
  using Rows = std::shared_ptr<const StageChain::Recording>;
  /// `limit`: the most memory for rows [bytes].
  explicit RecordingStore(std::uint64_t limit) : limit_(limit) {}

  /// Returns the rows of a recording, stored or from `make`, which is called without the lock, once
  /// for all threads that ask at the same time. Rethrows its exceptions.
  [[nodiscard]] Rows get(std::size_t recording, const std::function<Rows()>& make);
  /// Returns stored rows, or null.
  [[nodiscard]] Rows find(std::size_t recording);
  /// Whether a thread is computing these rows now.
  [[nodiscard]] bool is_being_made(std::size_t recording) const;
  [[nodiscard]] std::uint64_t limit() const { return limit_; }
  [[nodiscard]] std::uint64_t bytes() const;
  /// The rows that fit within the limit and the memory available now [bytes].
  [[nodiscard]] std::uint64_t storable() const;
  [[nodiscard]] std::uint64_t made() const;  ///< how often rows were computed

 private:
  struct Entry {
    std::size_t recording = 0;
    Rows rows;
    std::uint64_t bytes = 0;
  };
  void keep(std::size_t recording, const Rows& rows);
  void shrink(std::uint64_t to);

  const std::uint64_t limit_;
  mutable std::mutex mutex_;  // guards the members below
  Condition made_one_{new std::condition_variable};
  std::list<Entry> entries_;  // most recently used first
  std::unordered_map<std::size_t, std::list<Entry>::iterator> places_;
  std::unordered_set<std::size_t> being_made_;
  std::uint64_t bytes_ = 0, made_ = 0;
  std::uint64_t until_look_ = 0;  // available memory is checked after this many more bytes
};

}  // namespace melflow
