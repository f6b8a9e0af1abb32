// Counts how many threads are in a piece of code at once, from inside, and lets threads wait for
// each other without sleeping. After oneTBB's concurrency_tracker.h.
#pragma once

#include <atomic>
#include <condition_variable>
#include <mutex>

namespace melflow::test {

class ConcurrencyProbe {
 public:
  class Visit {
   public:
    explicit Visit(ConcurrencyProbe& probe) : probe_(probe), now_(probe.enter()) {}
    Visit(const Visit&) = delete;
    Visit& operator=(const Visit&) = delete;
    ~Visit() { probe_.inside_.fetch_sub(1, std::memory_order_relaxed); }
    /// The number of threads inside when this one entered.
    [[nodiscard]] int now() const { return now_; }

   private:
    ConcurrencyProbe& probe_;
    int now_;
  };
  [[nodiscard]] int peak() const { return peak_.load(std::memory_order_relaxed); }

 private:
  int enter() {
    const int now = inside_.fetch_add(1, std::memory_order_relaxed) + 1;
    int peak = peak_.load(std::memory_order_relaxed);
    while (now > peak && !peak_.compare_exchange_weak(peak, now, std::memory_order_relaxed)) {
    }
    return now;
  }
  // Relaxed on purpose: the probe must not impose the order that the code under test has to ensure.
  std::atomic<int> inside_{0};
  std::atomic<int> peak_{0};
};

/// A gate that stays open once it is opened.
class Gate {
 public:
  void open() {
    {
      const std::lock_guard lock(mutex_);
      open_ = true;
    }
    wake_.notify_all();
  }
  void wait() {
    std::unique_lock lock(mutex_);
    wake_.wait(lock, [this] { return open_; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable wake_;
  bool open_ = false;
};

}  // namespace melflow::test
