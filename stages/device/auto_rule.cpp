#include "stages/device/auto_rule.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "stages/device/slot_load.h"

namespace melflow {

double cpu_seconds(const MelPlan& plan, const std::optional<WindowGrid>& grid, double files,
                   double samples) {
  if (files < 1 || samples < 1) return 0;
  // One of the size of all; of a very long one, a part.
  constexpr double kLongest = 1 << 22;
  const double each = samples / files;
  const double part = std::min(each, kLongest);
  const SlotLoad load = slot_load(plan, grid, static_cast<std::int64_t>(part));
  const double frames = files * static_cast<double>(load.frames) * each / part;
  // 2,952,000 frames/s with a transform of 512 (perf/README.md); others by the transform's steps.
  constexpr double kOf512 = 0.34e-6;
  const double n = plan.n_fft();
  return frames * kOf512 * n * std::log2(n) / (512 * 9);
}

std::string why_on_cpu(double seconds_of_a_core, int workers, double least) {
  const double seconds = seconds_of_a_core / std::max(workers, 1);
  if (seconds >= least) return "";
  return fmt::format(
      "auto: about {:.1f} s of work for {} workers; devices are opened from {:g} s on, auto_from",
      seconds, workers, least);
}

}  // namespace melflow
