// Sequences the blocks of one stream before a stage: they pass it one at a time, in the order of
// their arrival, in whatever order oneTBB runs its tasks. Only pieces of a stream have turns
// (sequence numbers); a whole file needs none.
#pragma once

#include <mutex>
#include <unordered_map>
#include <vector>

#include "pipeline/run/work.h"

namespace melflow {

class Turns {
 public:
  /// Appends the turns of `origins` when they come to the stage, which is number `branch` of those
  /// behind the node before it.
  void issue(const Origins& origins, std::uint32_t branch, std::vector<Turn>& turns) {
    for (const Origin& o : origins)
      if (!o.whole()) return issue_pieces(origins, branch, turns);
  }
  /// Whether it is the work's turn. False: the work is kept here until done() gives it back.
  [[nodiscard]] bool may_begin(Work& work);
  /// Calls `call` for all work that is kept here, which stays.
  template <class F>
  void for_each_waiting(F&& call) {
    const std::lock_guard lock(mutex_);
    for (auto& [stream, line] : lines_)
      for (Work* work : line.waiting) call(*work);
  }
  /// Ends these turns; appends to `ask_again` the work whose turn may have come.
  void done(const std::vector<Turn>& turns, std::vector<Work*>& ask_again);

 private:
  void issue_pieces(const Origins& origins, std::uint32_t branch, std::vector<Turn>& turns);

  struct Line {
    std::uint32_t issued = 0, done = 0;
    std::uint64_t last_call = 0;  // an item may hold several pieces of a stream
    std::vector<Work*> waiting;
  };
  std::mutex mutex_;
  std::unordered_map<const Stream*, Line> lines_;
  std::uint64_t calls_ = 0;
};

}  // namespace melflow
