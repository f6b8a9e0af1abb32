#include "stages/training/sample_batch.h"

#include <chrono>
#include <utility>

namespace melflow {

bool BatchQueue::put(SampleBatch batch) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return is_closed_ || batches_.size() < capacity_; });
  if (is_closed_) return false;
  batches_.push_back(std::move(batch));
  changed_.notify_all();
  return true;
}

void BatchQueue::end() {
  const std::lock_guard lock(mutex_);
  is_ended_ = true;
  changed_.notify_all();
}

BatchQueue::State BatchQueue::take(SampleBatch& out, double seconds) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, std::chrono::duration<double>(seconds),
                    [this] { return is_ended_ || is_closed_ || !batches_.empty(); });
  if (batches_.empty()) return is_ended_ || is_closed_ ? State::ended : State::nothing_yet;
  out = std::move(batches_.front());
  batches_.pop_front();
  changed_.notify_all();
  return State::batch;
}

void BatchQueue::close() {
  std::deque<SampleBatch> dropped;
  const std::lock_guard lock(mutex_);
  is_closed_ = true;
  dropped.swap(batches_);
  changed_.notify_all();
}

void BatchQueue::warn(std::string text) {
  const std::lock_guard lock(mutex_);
  warnings_.push_back(std::move(text));
}

std::vector<std::string> BatchQueue::take_warnings() {
  const std::lock_guard lock(mutex_);
  return std::exchange(warnings_, {});
}

std::size_t BatchQueue::waiting() const {
  const std::lock_guard lock(mutex_);
  return batches_.size();
}

}  // namespace melflow
