// Blocks of one stream pass a stage one at a time and in the order in which they came to it,
// whatever order oneTBB runs its tasks in. Only pieces of a stream have turns; a whole file passes
// without.
#pragma once

#include <mutex>
#include <unordered_map>
#include <vector>

#include "pipeline/work.h"

namespace melflow {

class Turns {
 public:
  /// When `origins` come to the stage, which is that branch of the node before it: appends their
  /// turns.
  void issue(const Origins& origins, std::uint32_t branch, std::vector<Turn>& turns) {
    for (const Origin& o : origins)
      if (!o.whole()) return issue_pieces(origins, branch, turns);
  }
  /// False: it is kept until done() gives it back.
  [[nodiscard]] bool may_begin(Work& work);
  /// The stage is through with these. Appends the work that should ask again.
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
