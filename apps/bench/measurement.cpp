#include "apps/bench/measurement.h"

#include <mutex>

#include <fmt/format.h>

#include "pipeline/base/threads.h"

namespace melflow {

void measure(std::vector<Measurement>& all, double seconds, int rounds,
             const std::atomic<bool>& is_stopped, const std::function<void(int)>& begun) {
  const Slice slice{seconds, is_stopped};
  for (int round = 1; round <= rounds && !is_stopped; ++round) {
    begun(round);
    for (Measurement& m : all) {
      if (!m.why_not.empty()) continue;
      const double figure = m.run(slice);
      if (is_stopped) return;
      if (figure > 0) m.figures.push_back(figure);
    }
  }
}

double rate_on(int threads, const Slice& slice, const std::function<Work()>& make_work) {
  std::mutex mutex;
  double total = 0;
  const auto began = std::chrono::steady_clock::now();
  on_threads(threads, [&] {
    const Work work = make_work();
    double amount = 0;
    do {
      amount += work();
    } while (!slice.is_over(began));
    const std::lock_guard lock(mutex);
    total += amount;
  });
  return total / Slice::seconds_since(began);
}

std::string cores_text(int cores) { return fmt::format("{} core{}", cores, cores == 1 ? "" : "s"); }

}  // namespace melflow
