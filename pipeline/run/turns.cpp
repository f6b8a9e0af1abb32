#include "pipeline/run/turns.h"

#include <utility>

namespace melflow {

void Turns::issue_pieces(const Origins& origins, std::uint32_t branch, std::vector<Turn>& turns) {
  const std::lock_guard lock(mutex_);
  const std::uint64_t call = ++calls_;
  for (const Origin& o : origins) {
    if (o.whole()) continue;
    Line& line = lines_[o.stream.get()];
    if (std::exchange(line.last_call, call) != call)
      turns.push_back({o.stream.get(), line.issued++, branch});
  }
}

bool Turns::may_begin(Work& work) {
  if (work.turns.empty()) return true;
  const std::lock_guard lock(mutex_);
  for (const Turn& t : work.turns) {
    Line& line = lines_.at(t.stream);
    if (line.done == t.number) continue;
    line.waiting.push_back(&work);
    return false;
  }
  return true;
}

void Turns::done(const std::vector<Turn>& turns, std::vector<Work*>& ask_again) {
  if (turns.empty()) return;
  const std::lock_guard lock(mutex_);
  for (const Turn& t : turns) {
    const auto it = lines_.find(t.stream);
    Line& line = it->second;
    ++line.done;
    ask_again.insert(ask_again.end(), line.waiting.begin(), line.waiting.end());
    line.waiting.clear();
    if (line.done == line.issued) lines_.erase(it);
  }
}

}  // namespace melflow
