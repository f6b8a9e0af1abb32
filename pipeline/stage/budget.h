// The memory budget of a run. An item is admitted only with a reservation for the most memory it
// can ever need; the reservation travels with the item and gives the bytes back when the last piece
// of it is gone. A reservation never grows, so nobody can wait for more while holding some; it
// shrinks when the item is known to need less from then on.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>

namespace melflow {

/// Whose memory it is: that of the oldest unfinished record, of the item that has it, or of a later
/// one.
enum class Claim { later, oldest_item, oldest_part };

class MemoryBudget {
 public:
  /// `reserve` of the `capacity` bytes are kept for the oldest unfinished source item, so that it
  /// can always go on and items that wait behind it get memory in the end; `for_parts` of these for
  /// the oldest of its parts, where a stage cuts items: its blocks must not take what they wait
  /// for.
  MemoryBudget(std::size_t capacity, std::size_t reserve, std::size_t for_parts = 0);

  /// Sets a function that is called, without any lock held, when bytes came back that somebody had
  /// asked for in vain. Waits until no thread is in the function before; not to be called by it.
  void on_release(std::function<void()> callback);

  /// Of what is kept for the oldest source item, `others` bytes are left to its blocks behind other
  /// stages: what asks for memory may be behind these in the order of the item.
  [[nodiscard]] bool try_acquire(std::size_t bytes, Claim claim, std::size_t others = 0);
  /// From any thread.
  void release(std::size_t bytes);

  [[nodiscard]] std::size_t capacity() const { return capacity_; }
  [[nodiscard]] std::size_t used() const;
  [[nodiscard]] std::size_t peak() const;
  [[nodiscard]] std::size_t mean() const;  ///< of all reservations so far; 0: there was none

 private:
  const std::size_t capacity_;
  const std::size_t reserve_, for_parts_;
  mutable std::mutex mutex_;
  std::size_t used_ = 0;
  std::size_t peak_ = 0;
  std::size_t acquired_ = 0, acquisitions_ = 0;
  bool is_wanted_ = false;  // somebody asked in vain since the last call of on_release_
  std::function<void()> on_release_;
  int telling_ = 0;  // threads in on_release_
  std::condition_variable told_;
};

/// Holds bytes of the budget and gives them back on destruction.
class Reservation {
 public:
  /// Takes bytes of the budget; null when it has no room now.
  static std::shared_ptr<const Reservation> try_make(MemoryBudget& budget, std::size_t bytes,
                                                     Claim claim, std::size_t others = 0);
  Reservation(MemoryBudget& budget, std::size_t bytes) : budget_(budget), bytes_(bytes) {}
  Reservation(const Reservation&) = delete;
  Reservation& operator=(const Reservation&) = delete;
  ~Reservation() { budget_.release(bytes_); }

  /// Gives back what is more than `bytes`; by one holder, and without a lock, since others that
  /// wait for memory may get it on this thread.
  void shrink(std::size_t bytes) const;

 private:
  MemoryBudget& budget_;
  mutable std::atomic<std::size_t> bytes_;
};

}  // namespace melflow
