// The memory budget of a run. An item is admitted only with a reservation for the most memory that
// it can ever need. The reservation travels with the item and returns the bytes when the last piece
// of the item is released. A reservation never grows, so nothing can hold memory while it waits for
// more. It shrinks once the item is known to need less.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

namespace melflow {

/// Whose memory is requested: that of the oldest unfinished record (oldest_part), of the source
/// item that contains it (oldest_item), or of a later item (later).
enum class Claim { later, oldest_item, oldest_part };

class Reservation;

/// Threads: any. Lifetime: outlives every Reservation.
/// Locks: its own is a leaf and is not held while the function of on_release() runs, on the thread
/// that gave the bytes back. So a reservation must not be destroyed under a lock that this function
/// takes.
class MemoryBudget {
 public:
  /// Keeps `reserve` of the `capacity` bytes for the oldest unfinished source item, so that it can
  /// always progress and the items behind it get memory in the end. Where a stage cuts items,
  /// `for_parts` of these bytes are kept for the oldest part, so that the blocks of its item cannot
  /// take the memory that they wait for.
  MemoryBudget(std::size_t capacity, std::size_t reserve, std::size_t for_parts = 0);

  /// Sets a function that is called, without any lock held, when bytes are released after a request
  /// was refused. Waits until no thread is in the previous function, which must not call this.
  void on_release(std::function<void()> callback);

  [[nodiscard]] std::size_t capacity() const { return capacity_; }
  [[nodiscard]] std::size_t used() const;
  [[nodiscard]] std::size_t peak() const;
  [[nodiscard]] std::size_t mean() const;  ///< of all reservations so far; 0 without any
  /// Adds to `bytes` the reserved bytes by Reservation::node().
  void add_holders(std::vector<double>& bytes) const;

 private:
  friend class Reservation;
  // Gives `holder` bytes, or returns false.
  bool acquire(Reservation& holder, std::size_t bytes, Claim claim, std::size_t others);
  // `gone`: the holder, if this was all that it had; else null.
  void release(std::size_t bytes, Reservation* gone);

  const std::size_t capacity_;
  const std::size_t reserve_, for_parts_;
  mutable std::mutex mutex_;
  std::size_t used_ = 0;
  std::size_t peak_ = 0;
  std::size_t acquired_ = 0, acquisitions_ = 0;
  Reservation* first_ = nullptr;  // a list of all
  bool is_wanted_ = false;        // a request was refused since the last call of on_release_
  std::function<void()> on_release_;
  int telling_ = 0;  // threads in on_release_
  std::condition_variable told_;
};

/// Holds bytes of the budget and returns them on destruction.
class Reservation {
 public:
  /// Takes bytes of the budget; returns null when there is no room now. Leaves `others` of the
  /// bytes kept for the oldest source item to its blocks in other stages: the requester may come
  /// after those in the order of the item. Releases nothing, so it may be called with a lock held.
  static std::shared_ptr<const Reservation> try_make(MemoryBudget& budget, std::size_t bytes,
                                                     Claim claim, std::size_t others = 0);
  /// Holds nothing yet, and is of no use: try_make() makes those that hold something.
  explicit Reservation(MemoryBudget& budget) : budget_(budget) {}
  Reservation(const Reservation&) = delete;
  Reservation& operator=(const Reservation&) = delete;
  ~Reservation();

  /// Returns all but `bytes` to the budget. Only one holder may call this, without a lock held:
  /// others that wait for memory may get it on this thread.
  void shrink(std::size_t bytes) const;
  /// Notes the number of the node that has the item or block now, for add_holders().
  void set_node(int node) const { node_.store(node, std::memory_order_relaxed); }
  [[nodiscard]] int node() const { return node_.load(std::memory_order_relaxed); }

 private:
  friend class MemoryBudget;
  MemoryBudget& budget_;
  mutable std::atomic<std::size_t> bytes_{0};
  mutable std::atomic<int> node_{0};
  bool is_listed_ = false;                             // in the budget
  Reservation *next_ = nullptr, *previous_ = nullptr;  // under the lock of the budget
};

}  // namespace melflow
