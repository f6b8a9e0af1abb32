#include "stages/files/under_way.h"

#include <pthread.h>
#include <xxhash.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <ctime>
#include <optional>
#include <utility>

#include "pipeline/base/threads.h"

namespace melflow {
namespace {

using Nanoseconds = std::chrono::nanoseconds;

// Returns the processor time of a thread; nothing where it has ended.
std::optional<Nanoseconds> time_of(clockid_t clock) {
  timespec t{};
  if (clock_gettime(clock, &t) != 0) return std::nullopt;
  return std::chrono::seconds(t.tv_sec) + Nanoseconds(t.tv_nsec);
}

UnderWay::Entry* find(UnderWay::Entries& in, std::uint64_t file) {
  const auto it = std::find_if(in.begin(), in.end(), [&](const auto& e) { return e.file == file; });
  return it == in.end() ? nullptr : &*it;
}

}  // namespace

std::uint64_t UnderWay::key(std::string_view path) {
  return std::max<std::uint64_t>(XXH3_64bits(path.data(), path.size()), 1);
}

UnderWay::Entries UnderWay::read(std::span<const std::byte> memory) {
  Entries out;
  for (; memory.size() >= kEntry; memory = memory.subspan(kEntry)) {
    Entry entry;
    std::memcpy(&entry, memory.data(), sizeof entry);
    if (entry.file != 0 && entry.state <= State::excluded_as_hung) out.push_back(entry);
  }
  return out;
}

UnderWay::Entries UnderWay::judge(const Entries& left) {
  Entries out, begun, hung;
  for (const Entry& e : left) {
    const bool is_known = e.state >= State::suspect;
    Entries& to = is_known ? out : e.state == State::hung ? hung : begun;
    if (find(to, e.file) == nullptr) to.push_back(e);
  }
  // Where the process was ended because of one of them, the others are not suspects.
  if (!hung.empty()) begun = std::move(hung);
  for (const Entry& e : begun) {
    Entry* before = find(out, e.file);
    if (before == nullptr)
      out.push_back({e.file, State::suspect});
    else if (begun.size() == 1 && before->state == State::suspect)
      before->state = e.state == State::hung ? State::excluded_as_hung : State::excluded;
  }
  return out;
}

UnderWay::~UnderWay() {
  {
    const std::lock_guard lock(mutex_);
    is_over_ = true;
  }
  over_.notify_all();
  for (std::thread& t : watch_) t.join();
}

void UnderWay::expect(int timeout) {
  if (timeout > 0 && (shortest_ == 0 || timeout < shortest_)) shortest_ = timeout;
}

void UnderWay::keep_in(MappedRange mapping, std::span<std::byte> memory, const Entries& known,
                       End end) {
  mapping_ = std::move(mapping);
  memory_ = reinterpret_cast<Slot*>(memory.data());
  known_ = known.size();
  slots_ = memory.size() / kEntry - known_;
  calls_ = std::vector<Call>(slots_);
  for (std::size_t i = 0; i < known_; ++i) {
    Slot& to = memory_[slots_ + i];
    to.state = known[i].state;
    to.file = known[i].file;
    if (known[i].state == State::suspect) ++suspects_;
  }
  // Without such a thread, hanging decoders are not ended.
  if (end && shortest_ > 0)
    (void)add_thread(watch_, "watchdog", [this, end = std::move(end)] { watch(end); });
}

const char* UnderWay::why_excluded(std::uint64_t file) const {
  for (const Slot* s = memory_ + slots_; s < memory_ + slots_ + known_; ++s) {
    if (s->file != file) continue;
    if (s->state == State::excluded)
      return "the program ended twice while this file was being decoded, the second time while "
             "nothing else was";
    if (s->state == State::excluded_as_hung)
      return "the program ended twice while this file was being decoded, the second time since its "
             "decoder did not come back";
  }
  return nullptr;
}

void UnderWay::pass(std::uint64_t file) {
  for (Slot* s = memory_ + slots_; s < memory_ + slots_ + known_; ++s) {
    std::uint64_t expected = file;
    if (s->state == State::suspect && s->file.compare_exchange_strong(expected, 0)) --suspects_;
  }
}

UnderWay::Mark::Mark(UnderWay* of, std::uint64_t file, int timeout) {
  if (of == nullptr || of->slots_ == 0) return;
  if (of->suspects_.load(std::memory_order_relaxed) > 0) alone_ = std::unique_lock(of->alone_);
  static std::atomic<std::size_t> threads{0};
  static thread_local const std::size_t own = threads++;
  // There are as many slots as workers, so one is free.
  for (std::size_t n = 0, i = own % of->slots_; n < of->slots_; ++n, i = (i + 1) % of->slots_) {
    std::uint64_t none = 0;
    if (!of->memory_[i].file.compare_exchange_strong(none, file)) continue;
    slot_ = &of->memory_[i];
    Call& call = of->calls_[i];
    clockid_t clock{};
    call.timeout.store(pthread_getcpuclockid(pthread_self(), &clock) == 0 ? timeout : 0,
                       std::memory_order_relaxed);
    call.clock.store(clock, std::memory_order_relaxed);
    call.number.fetch_add(1, std::memory_order_release);
    return;
  }
}

void UnderWay::watch(const End& end) {
  struct Seen {
    std::uint64_t number = 0;
    Nanoseconds began{};
  };
  std::vector<Seen> seen(slots_);
  const auto pause = std::chrono::milliseconds(std::clamp(shortest_ * 1000 / 8, 50, 5000));
  std::unique_lock lock(mutex_);
  while (!over_.wait_for(lock, pause, [this] { return is_over_; })) {
    for (std::size_t i = 0; i < slots_; ++i) {
      const Call& call = calls_[i];
      const std::uint64_t number = call.number.load(std::memory_order_acquire);
      const auto now = time_of(call.clock);
      const int timeout = call.timeout;
      const std::uint64_t file = memory_[i].file;
      if (file == 0 || timeout == 0 || !now || call.number != number) continue;
      if (seen[i].number != number) {
        seen[i] = {number, *now};
      } else if (*now - seen[i].began >= std::chrono::seconds(timeout)) {
        memory_[i].state = State::hung;
        return end(file, timeout);
      }
    }
  }
}

}  // namespace melflow
