// The queue before a node and the node's tokens: decides which work may begin, and counts where the
// node's time goes. Every change is made under the node's own lock, and no other lock is taken
// meanwhile, so the bounds hold exactly: at most `concurrency` items are in the stage, and each of
// them has a token in every queue behind the node, so a finished item never waits for one.
//
// Work that waits is in a heap, the oldest source item first (IsYounger). Of a stage that takes the
// blocks of a stream in order, only the first of these blocks is in the heap; those behind it
// follow one by one, as each leaves the stage. A whole file needs no order, unless it comes by two
// inputs.
//
// A call that makes room appends the work that may begin to a StartList, which the node then puts
// into its node of oneTBB. Invariant: while the queue is open, the heap has work that may begin
// only as long as there is no token for it. (A queue is closed while it fills for `start_at`.)
#pragma once

#include <tbb/spin_mutex.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "pipeline/base/measuring.h"
#include "pipeline/report/report.h"
#include "pipeline/report/stage_meter.h"
#include "pipeline/run/work.h"

namespace melflow {

/// Threads: add_branch() before the run; everything else from any thread.
/// Lifetime: does not own work, and points to Work in the heap until it begins or drain() gives it
/// back.
/// Errors: std::bad_alloc from arrive() and the calls that put work into the heap; the queue is
/// then unchanged.
class NodeQueue {
 public:
  using Clock = RunClock;
  using Time = Clock::time_point;

  /// What is processed one by one, in the order of arrival: nothing; the blocks of one stream; or
  /// all work of one stream, such as a whole file that comes by two inputs.
  enum class Order { none, blocks, all };
  /// No item begins before `start_level` items wait.
  NodeQueue(int concurrency, std::size_t start_level, Order order, Time now);
  /// Adds a queue behind the node, with its number of tokens; to be called before the run.
  void add_branch(std::size_t tokens);

  // ---- work comes

  /// Takes work that another node sends, which still counts it as well. True: it begins at once
  /// (Entry::direct) and is not in `start`. Else it belongs to the queue.
  [[nodiscard]] bool arrive(Time now, Work& work, StartList& start);
  /// Announces work that will come by resume().
  void announce(Time now);
  /// Notes that announced work does not come.
  void withdraw(Time now);
  /// Takes work that was in the node before and was announced.
  void resume(Time now, Work& work, StartList& start);
  /// The same in two steps: keeps the work ready, and later lets one more begin, the oldest.
  void put_back(Time now, Work& work);
  void resume_oldest(Time now, StartList& start);
  /// Opens a queue that fills. False: it is open, or empty.
  bool open(Time now, StartList& start);
  /// Work that waits behind a block of its own stream loses its token in the queue and counts as
  /// announced then. Returns the senders, who get the tokens back.
  [[nodiscard]] std::vector<Work::Sent> release_tokens(Time now);

  // ---- in the stage

  /// Returns the time from which the work counts as busy: `now`, or a later one that is counted
  /// already.
  Time begin(Time now, Entry entry);
  struct Finish {
    bool goes_on = false;     ///< the work is announced
    Work* resumed = nullptr;  ///< with `goes_on`: it is resumed at once
    bool gave = false;        ///< its output has the tokens until free_token()
    /// With `gave`, unless null: the branches that got output; the other tokens are free.
    const std::vector<std::size_t>* branches = nullptr;
    Passed in = {}, out = {};
    StageMeter::Visit visit = {};
    /// Work::Queued::streams of work that does not go on.
    std::vector<const Stream*> streams = {};
  };
  /// Returns the time until which the work counted as busy.
  Time finish(Time now, const Finish& f, StartList& start);
  /// Frees the token of an item that has begun in the node behind `branch`.
  void free_token(Time now, std::size_t branch, StartList& start);
  /// The source has sent announced work to the branches `waiting`, where it has tokens; all other
  /// tokens are free. Resumes `cursor`, unless it is null.
  void sent_on(Time now, const Passed& out, const std::vector<std::size_t>& waiting, Work* cursor,
               StartList& start);
  /// Ends announced work that holds a place in the order of these streams.
  void cut_off(Time now, const std::vector<const Stream*>& streams, StartList& start);

  // ---- the end

  /// Notes that no more items come. False: that was known already.
  bool end_input(Time now);
  enum class End { not_yet, flush, now };
  /// Ends the node if it has nothing left to do; `flush`: only an incomplete batch is left, which
  /// is announced.
  template <class F>
  End try_end(Time now, F&& holds) {
    const Lock lock(mutex_);
    if (is_ended_ || !is_idle()) return End::not_yet;
    tick(now);
    const bool flushes = holds();
    if (flushes) ++announced_;
    is_ended_ = !flushes;
    return flushes ? End::flush : End::now;
  }
  /// Whether only an incomplete batch is left to be sent on, which is announced then.
  template <class F>
  [[nodiscard]] bool try_flush(Time now, F&& holds) {
    const Lock lock(mutex_);
    if (is_ended_ || !is_idle() || !holds()) return false;
    tick(now);
    ++announced_;
    return true;
  }
  /// Whether no more items come; without the lock.
  [[nodiscard]] bool may_end() const { return may_end_.load(); }
  [[nodiscard]] bool is_ended() const;
  /// The work that is left when a run ended out of memory.
  [[nodiscard]] std::vector<Work*> drain();

  // ---- accounts

  struct Snapshot {
    int running = 0;
    std::size_t waiting = 0, announced = 0;
    std::ptrdiff_t free = 0;
    StageTime time;
    int peak_concurrency = 0;
    Passed in = {}, out = {};
    std::size_t max_depth = 0;
    double mean_depth = 0;
    std::size_t start_depth = 0;
    double start_wait_seconds = 0;
    std::optional<Time> first_done;  ///< when the first item was through
  };
  [[nodiscard]] Snapshot snapshot(Time now) const;
  [[nodiscard]] Passed taken_in() const;
  [[nodiscard]] Passed given() const;
  /// The cost of the visits so far.
  [[nodiscard]] StageMeter meter() const;
  /// Whether the visit that begins should measure its processor time; without the lock.
  [[nodiscard]] bool wants_cpu() const {
    return StageMeter::wants_cpu(visits_.load(std::memory_order_relaxed));
  }

 private:
  using Lock = tbb::spin_mutex::scoped_lock;
  struct Tokens {
    std::size_t most = 0, used = 0;
  };
  // The node has no items but those that a batch holds.
  [[nodiscard]] bool is_idle() const {
    return running_ == 0 && called_ == 0 && heap_.empty() && waiting_ == 0 && announced_ == 0;
  }
  void tick(Time now) const;
  [[nodiscard]] std::size_t free() const;
  void take_tokens();
  void give_back(const std::vector<std::size_t>& given);
  void put(Work& work);
  void put_resumed(Work& work);
  void let_in(StartList& start);
  void note_open(Time now);
  [[nodiscard]] bool is_ordered(const Origin& o) const {
    return order_ == Order::all || (order_ == Order::blocks && !o.whole());
  }
  [[nodiscard]] bool is_ordered(const Work& work) const;
  void enter_lines(Work& work);
  void leave_lines(const std::vector<const Stream*>& streams);

  const int concurrency_;
  const std::size_t start_level_;
  const Order order_;

  mutable tbb::spin_mutex mutex_;
  // The counts of work by what it is about to do. Queued work is in `waiting_` until it begins, in
  // addition to where else it is.
  int running_ = 0;            // in the stage
  std::size_t called_ = 0;     // was in a StartList, and has not begun
  std::size_t ready_ = 0;      // how many of those in the heap may begin
  std::size_t waiting_ = 0;    // have a token of the queue
  std::size_t announced_ = 0;  // will be resumed
  std::vector<Work*> heap_;
  // Of each stream, its blocks here, in order; the first one is in the heap or the stage, or has
  // left the stage; then the pointer is not dereferenced, as its work may be gone.
  std::unordered_map<const Stream*, std::vector<Work*>> lines_;
  bool is_open_ = true;
  bool input_over_ = false;
  bool is_ended_ = false;
  // The tokens of its own concurrency, then those of every queue behind it. Work has them while it
  // is called, in the stage or, as its output, in that queue.
  std::vector<Tokens> tokens_;
  std::atomic<bool> may_end_{false};  // input_over_, for readers without the lock

  // [ns] summed over concurrency, but for the last two: of items waiting, and of the queue.
  struct Times {
    std::int64_t busy = 0, input = 0, blocked = 0, core = 0, idle = 0, depth = 0, edge = 0;
  };
  mutable Times times_;
  mutable Time since_;
  int peak_ = 0;
  Passed in_, out_;
  StageMeter meter_;
  std::atomic<std::uint64_t> visits_{0};  // of the meter, for readers without the lock
  std::optional<Time> first_done_;
  std::size_t max_depth_ = 0;
  std::optional<Time> first_came_;
  std::size_t start_depth_ = 0;
  double start_wait_seconds_ = 0;
};

}  // namespace melflow
