#include "apps/python/recording_store.h"

#include <algorithm>
#include <exception>
#include <utility>

#include "pipeline/base/available_memory.h"

namespace melflow {
namespace {

constexpr std::uint64_t kLookEvery = 32 << 20;  // [bytes]
constexpr std::uint64_t kEntry = 256;           // overhead of an entry [bytes]

}  // namespace

RecordingStore::RecordingStore(std::uint64_t limit, int workers,
                               std::function<Rows(std::size_t)> make)
    : limit_(limit),
      make_(std::move(make)),
      workers_(std::make_unique<Workers>(1 + std::max(1, workers))) {
  workers_->start_threads();
}

RecordingStore::~RecordingStore() {
  const WithoutLockIfHeld free;
  stop();
}

void RecordingStore::stop() {
  if (is_forked_off()) {  // a forked process does not have the threads
    static_cast<void>(workers_.release());
    return;
  }
  {
    std::unique_lock lock(mutex_);
    is_stopping_ = true;
    ended_->wait(lock, [this] { return queued_ == 0; });
  }
  workers_.reset();
}

RecordingStore::Coming RecordingStore::get(std::size_t recording) {
  check_process();
  std::packaged_task<Rows()> task([this, recording] { return make(recording); });
  Coming rows = task.get_future().share();
  {
    const std::lock_guard lock(mutex_);
    if (const auto it = places_.find(recording); it != places_.end()) {
      entries_.splice(entries_.begin(), entries_, it->second);
      return it->second->rows;
    }
    if (const auto [it, is_new] = coming_.try_emplace(recording, rows); !is_new) return it->second;
  }
  run(std::move(task));
  return rows;
}

void RecordingStore::prefetch(std::size_t recording) {
  {
    const std::lock_guard lock(mutex_);
    if (!has_threads()) return;
  }
  static_cast<void>(get(recording));
}

RecordingStore::Coming RecordingStore::compute(std::function<Rows()> make) {
  check_process();
  std::packaged_task<Rows()> task(std::move(make));
  Coming rows = task.get_future().share();
  run(std::move(task));
  return rows;
}

void RecordingStore::run(std::packaged_task<Rows()> task) {
  std::unique_lock lock(mutex_);
  if (!has_threads()) {
    lock.unlock();
    return task();
  }
  ++queued_;
  lock.unlock();
  workers_->enqueue([this, task = std::make_shared<std::packaged_task<Rows()>>(std::move(task))] {
    const auto is_over = [this] {
      const std::lock_guard stopping(mutex_);
      return is_stopping_;
    };
    if (!is_over()) (*task)();
    const std::lock_guard ended(mutex_);
    --queued_;
    ended_->notify_all();
  });
}

RecordingStore::Rows RecordingStore::make(std::size_t recording) {
  Rows rows;
  std::exception_ptr error;
  try {
    rows = make_(recording);
  } catch (...) {
    error = std::current_exception();
  }
  const std::lock_guard lock(mutex_);
  ++made_;
  Coming coming = std::move(coming_.extract(recording).mapped());
  if (error) std::rethrow_exception(error);
  keep(recording, std::move(coming), *rows);
  return rows;
}

bool RecordingStore::has(std::size_t recording) const {
  const std::lock_guard lock(mutex_);
  return places_.contains(recording);
}

void RecordingStore::keep(std::size_t recording, Coming coming, const StageChain::Recording& rows) {
  std::uint64_t bytes = kEntry;
  for (const StageChain::Rows& part : rows) bytes += sizeof(part) + part.values.capacity();
  if (bytes > until_look_) {
    until_look_ = kLookEvery;
    const std::uint64_t most = storable_memory(available_memory(), bytes_);
    shrink(most);
    if (bytes_ + bytes > most) return;
  }
  if (bytes > limit_) return;
  shrink(limit_ - bytes);
  until_look_ -= std::min(until_look_, bytes);
  entries_.push_front({recording, std::move(coming), bytes});
  places_[recording] = entries_.begin();
  bytes_ += bytes;
}

std::uint64_t RecordingStore::storable() const {
  const std::lock_guard lock(mutex_);
  return std::min(limit_, storable_memory(available_memory(), bytes_));
}

void RecordingStore::shrink(std::uint64_t to) {
  while (bytes_ > to) {
    bytes_ -= entries_.back().bytes;
    places_.erase(entries_.back().recording);
    entries_.pop_back();
  }
}

std::uint64_t RecordingStore::bytes() const {
  const std::lock_guard lock(mutex_);
  return bytes_;
}

std::uint64_t RecordingStore::made() const {
  const std::lock_guard lock(mutex_);
  return made_;
}

}  // namespace melflow
