#include "cuda/completions.h"

#include <chrono>

namespace melflow::cuda {

void Completions::post(void* tag) {
  {
    const std::lock_guard lock(mutex_);
    done_.push_back(tag);
  }
  came_.notify_one();
}

void Completions::wake() {
  {
    const std::lock_guard lock(mutex_);
    woken_ = true;
  }
  came_.notify_one();
}

bool Completions::wait(std::vector<void*>& done, double seconds) {
  std::unique_lock lock(mutex_);
  const bool came = came_.wait_for(lock, std::chrono::duration<double>(seconds),
                                   [this] { return woken_ || !done_.empty(); });
  woken_ = false;
  done.insert(done.end(), done_.begin(), done_.end());
  done_.clear();
  return came;
}

}  // namespace melflow::cuda
