#include "pipeline/run/memory_gate.h"

#include <algorithm>
#include <new>
#include <numeric>

#include "pipeline/run/graph_node.h"

namespace melflow {
namespace {
// Walking the list of reservations takes some 10 us.
constexpr std::chrono::milliseconds kBetweenLooks{10};
}  // namespace

MemoryGate::MemoryGate(RunContext& run, std::size_t nodes)
    : run_(run), kept_(run.budget == nullptr ? 0 : run.budget->used()), holders_(nodes) {}

bool MemoryGate::ask(Work* work, GraphNode& node, std::size_t bytes) {
  const Waiter asker{work, &node, bytes, node.is_source()};
  return tell(&asker) == Told::asker;
}

MemoryGate::Told MemoryGate::tell(const Waiter* asker) {
  std::vector<Waiter> granted, cut_off;
  {
    const std::lock_guard lock(mutex_);
    if (asker != nullptr) {
      const auto later = [](const Waiter& a, const Waiter& b) {
        return IsYounger()(b.work, a.work);
      };
      waiters_.insert(std::upper_bound(waiters_.begin(), waiters_.end(), *asker, later), *asker);
      // Set before memory is asked for, so that a release in between is not missed.
      is_waiting_.store(true);
    }
    granted.reserve(waiters_.size());
    cut_off.reserve(waiters_.size());
    bool source_waits = false;  // items are admitted in their order
    std::size_t kept = 0;
    for (Waiter& w : waiters_) {
      if (closed_ || (!w.is_source && w.node->is_over(*w.work))) {
        cut_off.push_back(w);
        continue;
      }
      if (!(w.is_source && source_waits)) w.work->progress.reservation = reserve(w);
      if (w.work->progress.reservation) {
        granted.push_back(w);
      } else {
        source_waits |= w.is_source;
        waiters_[kept++] = w;
      }
    }
    waiters_.resize(kept);
    note_waiting(kept > 0);
    changed_.notify_all();
    if (granted.empty() && cut_off.empty()) return Told::nobody;
    ++telling_;
    ++told_;
  }
  Told out = Told::others;
  for (const Waiter& w : granted) {
    if (asker != nullptr && w.work == asker->work)
      out = Told::asker;
    else
      w.node->granted(w.work);
  }
  for (const Waiter& w : cut_off) w.node->cut_off(w.work);
  --telling_;
  return out;
}

// Null if the budget has no room, or if there is no memory for the reservation object itself.
std::shared_ptr<const Reservation> MemoryGate::reserve(const Waiter& w) {
  try {
    return Reservation::try_make(*run_.budget, w.bytes,
                                 w.work->request.claim(run_.ledger.oldest_open()),
                                 w.is_source ? 0 : w.node->plan().kept_behind);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

void MemoryGate::close() {
  const std::lock_guard lock(mutex_);
  closed_ = true;
  changed_.notify_all();
}

bool MemoryGate::wait(std::uint64_t told) {
  {
    std::unique_lock lock(mutex_);
    if (told_ != told) return true;
    if (waiters_.empty()) return false;
    changed_.wait(lock, [&] { return told_ != told || closed_ || run_.budget->used() <= kept_; });
    if (told_ != told) return true;
  }
  return pump() || told_ != told;  // the thread that gave memory back may be first
}

std::vector<double> MemoryGate::holders() const {
  const std::lock_guard lock(mutex_);
  std::vector<double> shares = holders_;
  const double all = std::accumulate(shares.begin(), shares.end(), 0.0);
  if (all <= 0) return {};
  for (double& share : shares) share /= all;
  return shares;
}

double MemoryGate::wait_seconds() const {
  const std::lock_guard lock(mutex_);
  return wait_seconds_;
}

void MemoryGate::note_waiting(bool waiting) {
  is_waiting_.store(waiting);
  if (!waiting && !since_) return;
  const Clock::time_point now = Clock::now();
  if (waiting && now - looked_ >= kBetweenLooks) {
    run_.budget->add_holders(holders_);
    looked_ = now;
  }
  if (since_.has_value() == waiting) return;
  if (!waiting) wait_seconds_ += std::chrono::duration<double>(now - *since_).count();
  since_ = waiting ? std::optional(now) : std::nullopt;
}

}  // namespace melflow
