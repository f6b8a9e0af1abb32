// Batches on their way to a training program: made ahead of it, by one thread or several, and taken
// in order by one.
#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <limits>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace melflow {

enum class TakeResult { batch, ended, nothing_yet };

/// Thread-safe.
template <class Batch>
class BatchQueue {
 public:
  /// At most `capacity` batches are begun and not taken. `count`: how many there are, if known.
  explicit BatchQueue(std::size_t capacity,
                      std::uint64_t count = std::numeric_limits<std::uint64_t>::max())
      : capacity_(capacity), count_(count) {}

  /// Waits until one more batch may be begun, and returns its number; nothing: no more are wanted.
  std::optional<std::uint64_t> begin() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] {
      // While the program waits for the first batch, no other may take cores from it.
      const bool may_begin = begun_ == 0 || has_first();
      return is_over(begun_) || (may_begin && begun_ < taken_ + capacity_);
    });
    if (is_over(begun_)) return std::nullopt;
    return begun_++;
  }
  void put(std::uint64_t number, Batch batch) {
    const std::lock_guard lock(mutex_);
    if (!is_closed_) made_.emplace(number, std::move(batch));
    changed_.notify_all();
  }
  /// Puts the next batch, where one thread makes them; false: no more are wanted.
  bool put(Batch batch) {
    const std::optional<std::uint64_t> number = begin();
    if (number) put(*number, std::move(batch));
    return number.has_value();
  }
  /// Returns the number of the next batch to look ahead at, of at most `ahead` that may not be
  /// begun yet. Waits as begin(); one thread calls it.
  std::optional<std::uint64_t> look(std::size_t ahead) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] {
      looked_at_ = std::max(looked_at_, begun_);
      return is_over(looked_at_) || (has_first() && looked_at_ < taken_ + capacity_ + ahead);
    });
    if (is_over(looked_at_)) return std::nullopt;
    return looked_at_++;
  }
  /// Notes that no more batches come.
  void end() {
    const std::lock_guard lock(mutex_);
    count_ = begun_;
    changed_.notify_all();
  }
  /// Ends it by an error, which take() throws behind the batches that are there.
  void fail(std::exception_ptr error) {
    const std::lock_guard lock(mutex_);
    if (!error_) error_ = std::move(error);
    is_closed_ = true;
    changed_.notify_all();
  }
  /// Waits for the next batch, for at most `seconds` [s].
  TakeResult take(Batch& out, double seconds) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, std::chrono::duration<double>(seconds),
                      [this] { return is_over(taken_) || made_.contains(taken_); });
    if (auto next = made_.extract(taken_)) {
      out = std::move(next.mapped());
      ++taken_;
      changed_.notify_all();
      return TakeResult::batch;
    }
    if (error_) std::rethrow_exception(error_);
    return is_over(taken_) ? TakeResult::ended : TakeResult::nothing_yet;
  }
  /// Notes that nobody takes batches any more; drops those that wait.
  void close() {
    std::map<std::uint64_t, Batch> dropped;
    const std::lock_guard lock(mutex_);
    is_closed_ = true;
    dropped.swap(made_);
    changed_.notify_all();
  }
  [[nodiscard]] std::size_t waiting() const {
    const std::lock_guard lock(mutex_);
    return made_.size();
  }

  /// Adds a warning about the pass as a whole, for the program.
  void warn(std::string text) {
    const std::lock_guard lock(mutex_);
    warnings_.push_back(std::move(text));
  }
  /// Returns the warnings since the last call.
  [[nodiscard]] std::vector<std::string> take_warnings() {
    const std::lock_guard lock(mutex_);
    return std::exchange(warnings_, {});
  }

 private:
  [[nodiscard]] bool is_over(std::uint64_t number) const { return is_closed_ || number >= count_; }
  [[nodiscard]] bool has_first() const { return taken_ > 0 || made_.contains(0); }

  const std::size_t capacity_;
  mutable std::mutex mutex_;  // guards the members below
  std::condition_variable changed_;
  std::uint64_t count_, begun_ = 0, taken_ = 0, looked_at_ = 0;
  std::map<std::uint64_t, Batch> made_;
  std::vector<std::string> warnings_;
  std::exception_ptr error_;
  bool is_closed_ = false;
};

}  // namespace melflow
