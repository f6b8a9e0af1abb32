// Which items may begin in one node, and where its time went. Every change is made under the node's
// own lock, with no other one taken meanwhile, so the bounds hold exactly: items in the stage are
// at most `concurrency`, and items in a queue behind it, with those that are being made for it, at
// most its places. An item that begins has a place in every queue behind the node, so a finished
// item never waits for one.
//
// A call that makes room lets in at once the items that may now begin. It returns their number,
// which the node tells its limiter or its threads. An item that could begin waits only while the
// queue fills for `start_at`.
#pragma once

#include <tbb/spin_mutex.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "pipeline/report.h"
#include "pipeline/work.h"

namespace melflow {

class NodePlaces {
 public:
  using Clock = std::chrono::steady_clock;
  using Time = Clock::time_point;

  /// Does not begin before `start_level` items wait, where that is more than one.
  NodePlaces(int concurrency, std::size_t start_level, Time now);
  /// A queue behind it. Before the run.
  void add_branch(std::size_t places);

  // ---- coming. Numbers that are returned: how many are let in.

  /// An item is being sent here; its maker is still counted as busy with it, so it is never
  /// nowhere. True: it may begin, need not go by the queue, and is let in. `is_full`: there is no
  /// place left after it.
  bool arrive(Time now, bool may_begin, bool is_full);
  /// Something will come Came::again.
  void expect(Time now);
  /// It lies in the queue, where it can be taken.
  [[nodiscard]] int offer(Time now, Came came);
  /// Lets in what waits for the queue to fill. Nothing: there was none.
  [[nodiscard]] std::optional<int> open(Time now);

  // ---- in the stage

  void begin(Time now, Came came);
  /// It was let in and came by the queue, but it is not its turn. It can be let in again before
  /// this is called, and be done: so this may be what the end waited for.
  [[nodiscard]] int put_off(Time now);
  struct Finish {
    bool goes_on = false;  ///< it comes again
    bool gave = false;     ///< its place in the queue behind stays taken until free_place()
    Passed in, out;
  };
  [[nodiscard]] int finish(Time now, const Finish& f);
  /// What was to come again does not.
  void forget(Time now);
  /// What it gave has begun in that branch.
  [[nodiscard]] int free_place(Time now, std::size_t branch);
  [[nodiscard]] int resize(Time now, std::size_t branch, std::size_t places);
  /// That the source has handed on what it kept until there was memory for it.
  void note_given(const Passed& out);

  // ---- the end

  /// False: it knew that.
  bool end_input(Time now);
  enum class End { not_yet, flush, now };
  /// Whether the node is through; `flush`: but for what a batch holds, which now comes Came::again.
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
  /// Whether it has nothing to do but to send on what a batch holds, which now comes Came::again.
  template <class F>
  [[nodiscard]] bool try_flush(Time now, F&& holds) {
    const Lock lock(mutex_);
    if (is_ended_ || !is_idle() || !holds()) return false;
    tick(now);
    ++again_;
    return true;
  }
  /// That its input is over; without the lock.
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
    bool is_open = true;
  };
  [[nodiscard]] Snapshot snapshot(Time now) const;
  [[nodiscard]] Passed taken_in() const;
  [[nodiscard]] Passed given() const;
  /// Whether the item that was let in last has the last place of a queue.
  [[nodiscard]] bool is_full() const { return is_full_.load(std::memory_order_relaxed); }
  /// Once, after as many items as review() said.
  [[nodiscard]] bool wants_review() {
    return review_due_.load(std::memory_order_relaxed) && review_due_.exchange(false);
  }
  /// How many have come that left no place free, since this was asked the last time; the next
  /// review is after `next` more items.
  std::size_t review(std::size_t next);

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
  void take(std::size_t n);
  int let_in();
  void note_open(Time now);

  const int concurrency_;
  const std::size_t start_level_;

  mutable tbb::spin_mutex mutex_;
  int running_ = 0;          // in the stage
  std::size_t called_ = 0;   // let in, and not begun
  std::size_t offered_ = 0;  // lie in the queue and can be let in
  std::size_t waiting_ = 0;  // have a place in the queue
  std::size_t again_ = 0;    // will come again
  bool is_open_ = true;
  bool input_over_ = false;
  bool is_ended_ = false;
  // Its own concurrency, then the places of every queue behind it: for items in the stage and for
  // what they became. Of `used`, those that are let in are part.
  std::vector<Bound> bounds_;
  std::atomic<bool> is_full_{false};
  std::atomic<bool> may_end_{false};  // input_over_, without the lock

  std::atomic<bool> review_due_{false};
  std::size_t until_review_ = 1;  // no queue could have shortened the wait for the first item
  std::size_t filled_ = 0;

  // [ns] summed over concurrency, but for the last two: of items waiting, and of the queue.
  struct Times {
    std::int64_t busy = 0, input = 0, blocked = 0, core = 0, idle = 0, depth = 0, edge = 0;
  };
  mutable Times times_;
  mutable Time since_;
  int peak_ = 0;
  Passed in_, out_;
  std::size_t max_depth_ = 0;
  std::optional<Time> first_came_;
  std::size_t start_depth_ = 0;
  double start_wait_seconds_ = 0;
};

}  // namespace melflow
