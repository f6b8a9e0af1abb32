#include "apps/python/recording_store.h"

#include <algorithm>

#include "pipeline/base/available_memory.h"

namespace melflow {
namespace {

constexpr std::uint64_t kLookEvery = 32 << 20;  // [bytes]
constexpr std::uint64_t kEntry = 256;           // overhead of an entry [bytes]

}  // namespace

RecordingStore::Rows RecordingStore::get(std::size_t recording, const std::function<Rows()>& make) {
  std::unique_lock lock(mutex_);
  for (;;) {
    if (const auto it = places_.find(recording); it != places_.end()) {
      entries_.splice(entries_.begin(), entries_, it->second);
      return it->second->rows;
    }
    if (being_made_.insert(recording).second) break;
    made_one_->wait(lock);
  }
  lock.unlock();
  Rows rows;
  std::exception_ptr error;
  try {
    rows = make();
  } catch (...) {
    error = std::current_exception();
  }
  lock.lock();
  being_made_.erase(recording);
  ++made_;
  if (!error) keep(recording, rows);
  made_one_->notify_all();
  if (error) std::rethrow_exception(error);
  return rows;
}

RecordingStore::Rows RecordingStore::find(std::size_t recording) {
  const std::lock_guard lock(mutex_);
  const auto it = places_.find(recording);
  if (it == places_.end()) return nullptr;
  entries_.splice(entries_.begin(), entries_, it->second);
  return it->second->rows;
}

bool RecordingStore::is_being_made(std::size_t recording) const {
  const std::lock_guard lock(mutex_);
  return being_made_.contains(recording);
}

void RecordingStore::keep(std::size_t recording, const Rows& rows) {
  std::uint64_t bytes = kEntry;
  for (const StageChain::Rows& part : *rows) bytes += sizeof(part) + part.values.capacity();
  if (bytes > until_look_) {
    until_look_ = kLookEvery;
    const std::uint64_t most = storable_memory(available_memory(), bytes_);
    shrink(most);
    if (bytes_ + bytes > most) return;
  }
  if (bytes > limit_) return;
  shrink(limit_ - bytes);
  until_look_ -= std::min(until_look_, bytes);
  entries_.push_front({recording, rows, bytes});
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
