// completions.h - tags of finished batches, for a thread that waits for them: they come out in the
// order in which they are posted.

#pragma once

#include <condition_variable>
#include <mutex>
#include <vector>

namespace melflow::cuda {

class Completions {
 public:
  void post(void* tag);
  // Lets wait() return without a tag; remembered.
  void wake();
  // Appends what is done. Returns after `seconds` at the latest; true: something came, or wake().
  bool wait(std::vector<void*>& done, double seconds);

 private:
  std::mutex mutex_;
  std::condition_variable came_;
  std::vector<void*> done_;
  bool woken_ = false;
};

}  // namespace melflow::cuda
