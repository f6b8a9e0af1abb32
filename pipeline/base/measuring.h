// The clock of a run's own measurements (times in stages and in queues, durations of calls).
// Measuring is always on.
#pragma once

#include <chrono>

namespace melflow {

#ifdef MELFLOW_UNMEASURED
/// For perf/measuring_cost.py alone, which compares a program that measures nothing with one that
/// does: a clock that never advances, so `auto` settings keep their initial values.
inline constexpr bool kMeasures = false;
struct RunClock : std::chrono::steady_clock {
  static time_point now() noexcept { return {}; }
};
#else
inline constexpr bool kMeasures = true;
using RunClock = std::chrono::steady_clock;
#endif

}  // namespace melflow
