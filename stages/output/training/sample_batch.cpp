#include "stages/output/training/sample_batch.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <numeric>
#include <utility>

namespace melflow {

SampleBatch::Rows::Rows(BufferPool& pool, NumberType values, std::size_t samples,
                        const std::vector<std::size_t>& row, std::optional<std::size_t> longest)
    : type(values), shape{samples} {
  if (longest) shape.push_back(*longest);
  shape.insert(shape.end(), row.begin(), row.end());
  data = pool.lease(std::max<std::size_t>(
      1, std::accumulate(shape.begin(), shape.end(), size_of(type), std::multiplies<>())));
}

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
