#include "pipeline/run/workers.h"

#include <tbb/info.h>

#include <algorithm>

#include "pipeline/base/threads.h"

namespace melflow {
namespace {
// In an arena with a single place, or if oneTBB may have no worker at all, an enqueued task makes
// oneTBB start one, which would again be a thread of its own.
constexpr int kLeast = 2;
}  // namespace

// A global_control can only lower the limit of the process, whose default is the number of cores.
Workers::Workers(int count)
    : wanted_(count),
      arena_(std::max(count, kLeast), static_cast<unsigned>(std::max(count, kLeast))) {
  constexpr auto kMost = tbb::global_control::max_allowed_parallelism;
  if (tbb::info::default_concurrency() < kLeast)
    at_least_two_.emplace(kMost, std::max<std::size_t>(tbb::global_control::active_value(kMost),
                                                       static_cast<std::size_t>(kLeast)));
}

Workers::~Workers() {
  for (const auto& shift : shifts_) shift->release_wait();
  for (std::thread& t : threads_) t.join();
}

void Workers::start_threads() {
  while (count() < wanted_) {
    arena_.execute([this] { shifts_.push_back(std::make_unique<tbb::flow::graph>()); });
    tbb::flow::graph& shift = *shifts_.back();
    shift.reserve_wait();
    if (add_thread(threads_, "worker", [&shift] { shift.wait_for_all(); })) continue;
    shift.release_wait();
    shifts_.pop_back();
    return;
  }
}

}  // namespace melflow
