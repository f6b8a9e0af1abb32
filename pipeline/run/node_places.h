// Decides which items may begin in one node, and counts where its time goes. Every change is made
// under the node's own lock, and no other lock is taken meanwhile, so the bounds hold exactly: at
// most `concurrency` items are in the stage, and at most as many items as it has places are in a
// queue behind it or being made for it. An item that begins has a place in every queue behind the
// node, so a finished item never waits for one.
//
// A call that makes room lets in the items that may now begin and returns their number, which the
// node passes to its limiter or its threads. An item that could begin waits only while the queue
// fills for `start_at`.
#pragma once

#include <tbb/spin_mutex.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "pipeline/base/measuring.h"
#include "pipeline/report/report.h"
#include "pipeline/run/work.h"

namespace melflow {

class NodePlaces {
 public:
  using Clock = RunClock;
  using Time = Clock::time_point;

  /// No item begins before `start_level` items wait.
  NodePlaces(int concurrency, std::size_t start_level, Time now);
  /// Adds a queue behind the node; to be called before the run.
  void add_branch(std::size_t places);

  // ---- arrival. The numbers returned say how many items are admitted.

  /// Counts an item that is being sent here, while the node that made it still counts it as well.
  /// True: it is admitted and may begin without going through the queue.
  bool arrive(Time now, bool may_begin);
  /// Announces an item that will come Came::again.
  void expect(Time now);
  /// Notes that an item is in the queue and can be taken.
  [[nodiscard]] int offer(Time now, Came came);
  /// Lets in the items that wait for the queue to fill; nothing where none did.
  [[nodiscard]] std::optional<int> open(Time now);

  // ---- in the stage

  /// Returns the time from which it counts as busy: `now`, or a later one that is counted already.
  Time begin(Time now, Came came);
  /// Puts back an item that was admitted before its turn; one that has no place in the queue was
  /// announced by expect() before. It may have been admitted again and be done before this call, so
  /// the node may end with this call.
  [[nodiscard]] int put_off(Time now);
  /// Notes that an item that was put back leaves its place in the queue, and will come Came::again.
  void leave_queue(Time now);
  struct Finish {
    bool goes_on = false;  ///< the item comes again
    bool gave = false;     ///< it gave an item, whose place stays taken until free_place()
    /// With `gave`, unless null: to which branches it was given.
    const std::vector<std::size_t>* branches = nullptr;
    Passed in, out;
  };
  /// `counted`, unless it is null, gets the time until which it counted as busy.
  [[nodiscard]] int finish(Time now, const Finish& f, Time* counted = nullptr);
  /// Notes that an item announced by expect() does not come.
  void forget(Time now);
  /// Frees the place of an item that has begun in the node behind `branch`.
  [[nodiscard]] int free_place(Time now, std::size_t branch);
  /// Frees those of an item in all branches but the given ones.
  [[nodiscard]] int free_places(Time now, const std::vector<std::size_t>& given);
  /// Counts what the source has sent on after keeping it until there was memory for it.
  void note_given(const Passed& out);

  // ---- the end

  /// Notes that no more items come. False: that was known already.
  bool end_input(Time now);
  enum class End { not_yet, flush, now };
  /// Ends the node if it has nothing left to do; `flush`: only an incomplete batch is left, which
  /// now comes Came::again.
  template <class F>
  End try_end(Time now, F&& holds) {
    const Lock lock(mutex_);
    if (is_ended_ || !is_idle()) return End::not_yet;
    tick(now);
    const bool flushes = holds();
    if (flushes) ++again_;
    is_ended_ = !flushes;
    return flushes ? End::flush : End::now;
  }
  /// Whether only an incomplete batch is left to be sent on, which then comes Came::again.
  template <class F>
  [[nodiscard]] bool try_flush(Time now, F&& holds) {
    const Lock lock(mutex_);
    if (is_ended_ || !is_idle() || !holds()) return false;
    tick(now);
    ++again_;
    return true;
  }
  /// Whether no more items come; without the lock.
  [[nodiscard]] bool may_end() const { return may_end_.load(); }
  [[nodiscard]] bool is_ended() const;

  // ---- accounts

  struct Snapshot {
    int running = 0;
    std::size_t waiting = 0, again = 0;
    std::ptrdiff_t free = 0;
    StageTime time;
    int peak_concurrency = 0;
    Passed in, out;
    std::size_t max_depth = 0;
    double mean_depth = 0;
    std::size_t start_depth = 0;
    double start_wait_seconds = 0;
    std::optional<Time> first_done;  ///< when the first item was through
  };
  [[nodiscard]] Snapshot snapshot(Time now) const;
  [[nodiscard]] Passed taken_in() const;
  [[nodiscard]] Passed given() const;

 private:
  using Lock = tbb::spin_mutex::scoped_lock;
  struct Bound {
    std::size_t most = 0, used = 0;
  };
  // The node has no items but those that a batch holds.
  [[nodiscard]] bool is_idle() const {
    return running_ == 0 && called_ == 0 && offered_ == 0 && waiting_ == 0 && again_ == 0;
  }
  void tick(Time now) const;
  [[nodiscard]] std::size_t free() const;
  void give_back(const std::vector<std::size_t>& given);
  void take(std::size_t n);
  int let_in();
  void note_open(Time now);

  const int concurrency_;
  const std::size_t start_level_;

  mutable tbb::spin_mutex mutex_;
  int running_ = 0;          // in the stage
  std::size_t called_ = 0;   // admitted, and not begun
  std::size_t offered_ = 0;  // lie in the queue and can be admitted
  std::size_t waiting_ = 0;  // have a place in the queue
  std::size_t again_ = 0;    // will come again
  bool is_open_ = true;
  bool input_over_ = false;
  bool is_ended_ = false;
  // Its own concurrency, then the places of every queue behind it: for items in the stage and for
  // what they became. Of `used`, those that are admitted are part.
  std::vector<Bound> bounds_;
  std::atomic<bool> may_end_{false};  // input_over_, without the lock

  // [ns] summed over concurrency, but for the last two: of items waiting, and of the queue.
  struct Times {
    std::int64_t busy = 0, input = 0, blocked = 0, core = 0, idle = 0, depth = 0, edge = 0;
  };
  mutable Times times_;
  mutable Time since_;
  int peak_ = 0;
  Passed in_, out_;
  std::optional<Time> first_done_;
  std::size_t max_depth_ = 0;
  std::optional<Time> first_came_;
  std::size_t start_depth_ = 0;
  double start_wait_seconds_ = 0;
};

}  // namespace melflow
