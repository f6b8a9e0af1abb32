// Rows of recordings, or of all utterances of each, that were computed, kept in memory as far as a
// limit and the machine allow; what was not used for the longest time goes first.
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
  /// `limit`: [bytes].
  explicit RecordingStore(std::uint64_t limit) : limit_(limit) {}

  /// The rows of a recording, from the store or by `make`, which is called without a lock, once for
  /// all threads that ask meanwhile. Throws what it throws.
  [[nodiscard]] Rows get(std::size_t recording, const std::function<Rows()>& make);
  /// Likewise, where they are there; else null.
  [[nodiscard]] Rows find(std::size_t recording);
  /// Whether a thread makes them now.
  [[nodiscard]] bool is_being_made(std::size_t recording) const;
  [[nodiscard]] std::uint64_t limit() const { return limit_; }
  [[nodiscard]] std::uint64_t bytes() const;
  [[nodiscard]] std::uint64_t made() const;  ///< how often rows had to be computed

 private:
  struct Entry {
    std::size_t recording = 0;
    Rows rows;
    std::uint64_t bytes = 0;
  };
  void keep(std::size_t recording, const Rows& rows);
  void shrink(std::uint64_t to);

  const std::uint64_t limit_;
  mutable std::mutex mutex_;  // of what follows
  Condition made_one_{new std::condition_variable};
  std::list<Entry> entries_;  // last used first
  std::unordered_map<std::size_t, std::list<Entry>::iterator> places_;
  std::unordered_set<std::size_t> being_made_;
  std::uint64_t bytes_ = 0, made_ = 0;
  std::uint64_t until_look_ = 0;  // so many bytes more, and available memory is looked at
};

}  // namespace melflow
