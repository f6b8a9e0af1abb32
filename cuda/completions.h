// completions.h - tags of finished batches, for a thread that waits for them; returned in the order
// in which they were posted.

#pragma once

#include <condition_variable>
#include <mutex>
#include <vector>

namespace melflow::cuda {

class Completions {
 public:
  void post(void* tag);
  // Makes wait() return without a tag, also if it is called later.
  void wake();
  // Appends finished tags. Waits at most `seconds`; returns whether a tag or wake() came.
  bool wait(std::vector<void*>& done, double seconds);

 private:
  std::mutex mutex_;
  std::condition_variable came_;
  std::vector<void*> done_;
  bool woken_ = false;
};

}  // namespace melflow::cuda
