#include "pipeline/run/node_queue.h"

#include <algorithm>

namespace melflow {
namespace {

double seconds(std::int64_t nanoseconds) { return static_cast<double>(nanoseconds) * 1e-9; }

}  // namespace

NodeQueue::NodeQueue(int concurrency, std::size_t start_level, Order order, Time now)
    : concurrency_(concurrency),
      start_level_(start_level),
      order_(order),
      is_open_(start_level <= 1),
      since_(now) {
  tokens_.push_back({static_cast<std::size_t>(concurrency), 0});
}

void NodeQueue::add_branch(std::size_t tokens) { tokens_.push_back({tokens, 0}); }

std::size_t NodeQueue::free() const {
  std::size_t least = SIZE_MAX;
  for (const Tokens& s : tokens_) least = std::min(least, s.most - s.used);
  return least;
}

void NodeQueue::take_tokens() {
  for (Tokens& s : tokens_) ++s.used;
  ++called_;
}

void NodeQueue::put(Work& work) {
  heap_.push_back(&work);
  std::push_heap(heap_.begin(), heap_.end(), IsYounger());
}

void NodeQueue::put_resumed(Work& work) {
  work.queued.entry = Entry::resumed;
  put(work);
  ++ready_;
}

void NodeQueue::let_in(StartList& start) {
  if (ready_ == 0 || !is_open_) return;
  for (std::size_t n = std::min(ready_, free()); n > 0; --n) {
    std::pop_heap(heap_.begin(), heap_.end(), IsYounger());
    start.add(heap_.back());
    heap_.pop_back();
    --ready_;
    take_tokens();
  }
}

// Ready work waits for a core; work that cannot begin, for a token or for memory; the rest of the
// concurrency waits for input.
void NodeQueue::tick(Time now) const {
  const std::int64_t dt = (now - since_).count();
  if (dt <= 0) return;
  since_ = now;
  std::int64_t rest = concurrency_ - running_;
  std::int64_t called = 0, blocked = 0;
  if (rest > 0 && is_open_) {
    called = std::min<std::int64_t>(rest, static_cast<std::int64_t>(called_));
    rest -= called;
    blocked = std::min<std::int64_t>(rest, static_cast<std::int64_t>(ready_ + announced_));
    rest -= blocked;
  }
  times_.busy += running_ * dt;
  times_.core += called * dt;
  times_.blocked += blocked * dt;
  (is_ended_ || (input_over_ && waiting_ == 0) ? times_.idle : times_.input) += rest * dt;
  if (is_ended_) return;
  times_.depth += static_cast<std::int64_t>(waiting_) * dt;
  times_.edge += dt;
}

// ---- work comes ---------------------------------------------------------------------------------

bool NodeQueue::arrive(Time now, Work& work, StartList& start) {
  const bool goes_in_line = is_ordered(work);
  const Lock lock(mutex_);
  tick(now);
  if (goes_in_line) enter_lines(work);
  const bool is_first = work.queued.behind == 0;
  const bool begins = is_first && ready_ == 0 && is_open_ && free() > 0;
  work.queued.entry = begins ? Entry::direct : Entry::queued;
  max_depth_ = std::max(max_depth_, waiting_ + 1);
  if (begins) {
    take_tokens();
    return true;
  }
  ++waiting_;
  if (is_first) {
    put(work);
    ++ready_;
  }
  if (!is_open_) {
    if (!first_came_) first_came_ = now;
    if (waiting_ >= start_level_) note_open(now);
  }
  let_in(start);
  return false;
}

void NodeQueue::announce(Time now) {
  const Lock lock(mutex_);
  tick(now);
  ++announced_;
}

void NodeQueue::withdraw(Time now) {
  const Lock lock(mutex_);
  tick(now);
  --announced_;
}

void NodeQueue::resume(Time now, Work& work, StartList& start) {
  const Lock lock(mutex_);
  tick(now);
  --announced_;
  put_resumed(work);
  let_in(start);
}

void NodeQueue::put_back(Time now, Work& work) {
  const Lock lock(mutex_);
  tick(now);
  work.queued.entry = Entry::resumed;
  put(work);
}

void NodeQueue::resume_oldest(Time now, StartList& start) {
  const Lock lock(mutex_);
  tick(now);
  --announced_;
  ++ready_;
  let_in(start);
}

void NodeQueue::note_open(Time now) {
  is_open_ = true;
  start_depth_ = waiting_;
  start_wait_seconds_ = std::chrono::duration<double>(now - first_came_.value_or(now)).count();
}

bool NodeQueue::open(Time now, StartList& start) {
  const Lock lock(mutex_);
  if (is_open_ || (waiting_ == 0 && heap_.empty())) return false;
  tick(now);
  note_open(now);
  let_in(start);
  return true;
}

std::vector<Work::Sent> NodeQueue::release_tokens(Time now) {
  std::vector<Work::Sent> senders;
  const Lock lock(mutex_);
  tick(now);
  for (auto& [stream, line] : lines_) {
    for (std::size_t i = 1; i < line.size(); ++i) {
      Work* const work = line[i];
      if (std::exchange(work->queued.entry, Entry::resumed) != Entry::queued) continue;
      senders.push_back(std::exchange(work->sent, {.node = work->sent.node}));
      --waiting_;
      ++announced_;
    }
  }
  return senders;
}

// ---- blocks of a stream, in order ---------------------------------------------------------------

bool NodeQueue::is_ordered(const Work& work) const {
  if (order_ == Order::none) return false;
  for (const Item& item : work.items)
    for (const Origin& o : *item.origins)
      if (is_ordered(o)) return true;
  return false;
}

void NodeQueue::enter_lines(Work& work) {
  for (const Item& item : work.items) {
    for (const Origin& o : *item.origins) {
      if (!is_ordered(o)) continue;
      std::vector<Work*>& line = lines_[o.stream.get()];
      // The line's last block may have left the stage and its work be gone; then this work may have
      // got its address, so comparing addresses alone does not do.
      const std::vector<const Stream*>& mine = work.queued.streams;
      if (!line.empty() && line.back() == &work &&
          std::find(mine.rbegin(), mine.rend(), o.stream.get()) != mine.rend())
        continue;
      work.queued.behind += line.empty() ? 0 : 1;
      line.push_back(&work);
      work.queued.streams.push_back(o.stream.get());
    }
  }
}

void NodeQueue::leave_lines(const std::vector<const Stream*>& streams) {
  for (const Stream* stream : streams) {
    const auto it = lines_.find(stream);
    std::vector<Work*>& line = it->second;
    line.erase(line.begin());
    if (line.empty()) {
      lines_.erase(it);
    } else if (Work& next = *line.front(); --next.queued.behind == 0) {
      if (next.queued.entry == Entry::resumed) --announced_;
      put(next);
      ++ready_;
    }
  }
}

// ---- in the stage -------------------------------------------------------------------------------

NodeQueue::Time NodeQueue::begin(Time now, Entry entry) {
  const Lock lock(mutex_);
  tick(now);
  if (entry == Entry::queued) --waiting_;
  --called_;
  peak_ = std::max(peak_, ++running_);
  return since_;
}

NodeQueue::Time NodeQueue::finish(Time now, const Finish& f, StartList& start) {
  const Lock lock(mutex_);
  tick(now);
  --running_;
  if (!first_done_ && f.in.items > 0) [[unlikely]]
    first_done_ = now;
  in_ += f.in;
  out_ += f.out;
  meter_.add(f.visit);
  visits_.store(meter_.visits(), std::memory_order_relaxed);
  --tokens_.front().used;
  if (!f.gave)
    for (std::size_t i = 1; i < tokens_.size(); ++i) --tokens_[i].used;
  else if (f.branches != nullptr)
    give_back(*f.branches);
  if (f.resumed != nullptr) {
    put_resumed(*f.resumed);
  } else if (f.goes_on) {
    ++announced_;
  }
  leave_lines(f.streams);
  let_in(start);
  return since_;
}

void NodeQueue::give_back(const std::vector<std::size_t>& given) {
  for (std::size_t i = 1; i < tokens_.size(); ++i) --tokens_[i].used;
  for (const std::size_t branch : given) ++tokens_[1 + branch].used;
}

void NodeQueue::free_token(Time now, std::size_t branch, StartList& start) {
  const Lock lock(mutex_);
  tick(now);
  --tokens_[1 + branch].used;
  let_in(start);
}

void NodeQueue::sent_on(Time now, const Passed& out, const std::vector<std::size_t>& waiting,
                        Work* cursor, StartList& start) {
  const Lock lock(mutex_);
  tick(now);
  --announced_;
  out_ += out;
  give_back(waiting);
  if (cursor != nullptr) put_resumed(*cursor);
  let_in(start);
}

void NodeQueue::cut_off(Time now, const std::vector<const Stream*>& streams, StartList& start) {
  const Lock lock(mutex_);
  tick(now);
  --announced_;
  leave_lines(streams);
  let_in(start);
}

// ---- the end ------------------------------------------------------------------------------------

bool NodeQueue::end_input(Time now) {
  const Lock lock(mutex_);
  if (input_over_) return false;
  tick(now);
  input_over_ = true;
  may_end_.store(true);
  return true;
}

bool NodeQueue::is_ended() const {
  const Lock lock(mutex_);
  return is_ended_;
}

std::vector<Work*> NodeQueue::drain() {
  const Lock lock(mutex_);
  std::vector<Work*> left = std::exchange(heap_, {});
  for (const auto& [stream, line] : lines_)
    for (std::size_t i = 1; i < line.size(); ++i)
      if (std::exchange(line[i]->queued.behind, 0) > 0) left.push_back(line[i]);
  lines_.clear();
  return left;
}

// ---- accounts -----------------------------------------------------------------------------------

NodeQueue::Snapshot NodeQueue::snapshot(Time now) const {
  const Lock lock(mutex_);
  tick(now);
  Snapshot s;
  s.running = running_;
  s.waiting = waiting_;
  s.announced = announced_;
  s.free = static_cast<std::ptrdiff_t>(free());
  s.time.busy = seconds(times_.busy);
  s.time.waiting_input = seconds(times_.input);
  s.time.blocked_output = seconds(times_.blocked);
  s.time.waiting_core = seconds(times_.core);
  s.time.idle_after_end = seconds(times_.idle);
  s.peak_concurrency = peak_;
  s.in = in_;
  s.out = out_;
  s.max_depth = max_depth_;
  if (times_.edge > 0)
    s.mean_depth = static_cast<double>(times_.depth) / static_cast<double>(times_.edge);
  s.start_depth = start_depth_;
  s.start_wait_seconds = start_wait_seconds_;
  s.first_done = first_done_;
  return s;
}

Passed NodeQueue::taken_in() const {
  const Lock lock(mutex_);
  return in_;
}

Passed NodeQueue::given() const {
  const Lock lock(mutex_);
  return out_;
}

StageMeter NodeQueue::meter() const {
  const Lock lock(mutex_);
  return meter_;
}

}  // namespace melflow
