#include "pipeline/run/node_places.h"

#include <algorithm>

namespace melflow {
namespace {

double seconds(std::int64_t nanoseconds) { return static_cast<double>(nanoseconds) * 1e-9; }

}  // namespace

NodePlaces::NodePlaces(int concurrency, std::size_t start_level, Time now)
    : concurrency_(concurrency),
      start_level_(start_level),
      is_open_(start_level <= 1),
      since_(now) {
  bounds_.push_back({static_cast<std::size_t>(concurrency), 0});
}

void NodePlaces::add_branch(std::size_t places) { bounds_.push_back({places, 0}); }

std::size_t NodePlaces::free() const {
  std::size_t least = SIZE_MAX;
  for (const Bound& b : bounds_) least = std::min(least, b.most - b.used);
  return least;
}

void NodePlaces::take(std::size_t n) {
  for (Bound& b : bounds_) b.used += n;
  called_ += n;
}

int NodePlaces::let_in() {
  if (offered_ == 0 || !is_open_) return 0;
  const std::size_t n = std::min(offered_, free());
  if (n == 0) return 0;
  offered_ -= n;
  take(n);
  return static_cast<int>(n);
}

// What could begin waits for a core; what could not, for a place or for memory; what is left of the
// concurrency waits for input.
void NodePlaces::tick(Time now) const {
  const std::int64_t dt = (now - since_).count();
  if (dt <= 0) return;
  since_ = now;
  std::int64_t rest = concurrency_ - running_;
  std::int64_t ready = 0, blocked = 0;
  if (rest > 0 && is_open_) {
    ready = std::min<std::int64_t>(rest, static_cast<std::int64_t>(called_));
    rest -= ready;
    blocked = std::min<std::int64_t>(rest, static_cast<std::int64_t>(offered_ + again_));
    rest -= blocked;
  }
  times_.busy += running_ * dt;
  times_.core += ready * dt;
  times_.blocked += blocked * dt;
  (is_ended_ || (input_over_ && waiting_ == 0) ? times_.idle : times_.input) += rest * dt;
  if (is_ended_) return;
  times_.depth += static_cast<std::int64_t>(waiting_) * dt;
  times_.edge += dt;
}

// ---- coming -------------------------------------------------------------------------------------

bool NodePlaces::arrive(Time now, bool may_begin) {
  const Lock lock(mutex_);
  tick(now);
  const bool begins = may_begin && waiting_ == 0 && offered_ == 0 && is_open_ && free() > 0;
  if (begins)
    take(1);
  else
    ++waiting_;
  max_depth_ = std::max(max_depth_, waiting_ + (begins ? 1 : 0));
  if (!is_open_ && !first_came_) first_came_ = now;
  return begins;
}

void NodePlaces::expect(Time now) {
  const Lock lock(mutex_);
  tick(now);
  ++again_;
}

int NodePlaces::offer(Time now, Came came) {
  const Lock lock(mutex_);
  tick(now);
  if (came == Came::again) --again_;
  ++offered_;
  if (!is_open_ && waiting_ >= start_level_) note_open(now);
  return let_in();
}

void NodePlaces::note_open(Time now) {
  is_open_ = true;
  start_depth_ = waiting_;
  start_wait_seconds_ = std::chrono::duration<double>(now - first_came_.value_or(now)).count();
}

std::optional<int> NodePlaces::open(Time now) {
  const Lock lock(mutex_);
  if (is_open_ || (waiting_ == 0 && offered_ == 0)) return std::nullopt;
  tick(now);
  note_open(now);
  return let_in();
}

// ---- in the stage -------------------------------------------------------------------------------

NodePlaces::Time NodePlaces::begin(Time now, Came came) {
  const Lock lock(mutex_);
  tick(now);
  if (came == Came::by_queue) --waiting_;
  --called_;
  peak_ = std::max(peak_, ++running_);
  return since_;
}

int NodePlaces::put_off(Time now) {
  const Lock lock(mutex_);
  tick(now);
  --called_;
  for (Bound& b : bounds_) --b.used;
  return let_in();
}

void NodePlaces::leave_queue(Time now) {
  const Lock lock(mutex_);
  tick(now);
  --waiting_;
  ++again_;
}

int NodePlaces::finish(Time now, const Finish& f, Time* counted) {
  const Lock lock(mutex_);
  tick(now);
  if (counted != nullptr) *counted = since_;
  --running_;
  if (f.goes_on) ++again_;
  if (!first_done_ && f.in.items > 0) [[unlikely]]
    first_done_ = now;
  in_ += f.in;
  out_ += f.out;
  --bounds_.front().used;
  if (!f.gave)
    for (std::size_t i = 1; i < bounds_.size(); ++i) --bounds_[i].used;
  else if (f.branches != nullptr)
    give_back(*f.branches);
  return let_in();
}

void NodePlaces::give_back(const std::vector<std::size_t>& given) {
  for (std::size_t i = 1; i < bounds_.size(); ++i) --bounds_[i].used;
  for (const std::size_t branch : given) ++bounds_[1 + branch].used;
}

void NodePlaces::forget(Time now) {
  const Lock lock(mutex_);
  tick(now);
  --again_;
}

int NodePlaces::free_place(Time now, std::size_t branch) {
  const Lock lock(mutex_);
  tick(now);
  --bounds_[1 + branch].used;
  return let_in();
}

int NodePlaces::free_places(Time now, const std::vector<std::size_t>& given) {
  const Lock lock(mutex_);
  tick(now);
  give_back(given);
  return let_in();
}

void NodePlaces::note_given(const Passed& out) {
  const Lock lock(mutex_);
  out_ += out;
}

// ---- the end ------------------------------------------------------------------------------------

bool NodePlaces::end_input(Time now) {
  const Lock lock(mutex_);
  if (input_over_) return false;
  tick(now);
  input_over_ = true;
  may_end_.store(true);
  return true;
}

bool NodePlaces::is_ended() const {
  const Lock lock(mutex_);
  return is_ended_;
}

// ---- accounts -----------------------------------------------------------------------------------

NodePlaces::Snapshot NodePlaces::snapshot(Time now) const {
  const Lock lock(mutex_);
  tick(now);
  Snapshot s;
  s.running = running_;
  s.waiting = waiting_;
  s.again = again_;
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

Passed NodePlaces::taken_in() const {
  const Lock lock(mutex_);
  return in_;
}

Passed NodePlaces::given() const {
  const Lock lock(mutex_);
  return out_;
}

}  // namespace melflow
