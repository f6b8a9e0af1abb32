#include "stages/device/auto_rule.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "stages/device/slot_load.h"

namespace melflow {

DeviceGain device_gain(const MelPlan& plan, const std::optional<WindowGrid>& grid, double files,
                       double samples) {
  if (files < 1 || samples < 1) return {};
  // One of the size of all; of a very long one, a part.
  constexpr double kLongest = 1 << 22;
  const double each = samples / files;
  const double part = std::min(each, kLongest);
  const SlotLoad load = slot_load(plan, grid, static_cast<std::int64_t>(part));
  const double parts = files * each / part;
  const double frames = parts * static_cast<double>(load.frames);
  // A frame of 512 samples and 32 bands (mel/leak_512_32_int16 of perf/README.md); others by the
  // transform's steps.
  constexpr double kOf512 = 0.127e-6;
  // Bytes that one core copies in a second.
  constexpr double kCopied = 8e9;
  const double n = plan.n_fft();
  const double sample_bytes = goes_raw(plan) ? sizeof(std::int16_t) : sizeof(float);
  const double bytes_in = parts * sample_bytes * static_cast<double>(load.samples);
  const double bytes_out = frames * static_cast<double>(sizeof(float)) * plan.columns();
  return {frames * kOf512 * n * std::log2(n) / (512 * 9), (bytes_in + bytes_out) / kCopied};
}

std::string why_on_cpu(const DeviceGain& gain, int workers, double least) {
  if (least <= 0) return "";
  constexpr double kWorth = 0.5;
  if (gain.packing > kWorth * gain.rows)
    return fmt::format(
        "auto: packing for a device would take {:.0f}% of the time that it saves a core; devices "
        "are opened up to {:.0f}%",
        100 * gain.packing / gain.rows, 100 * kWorth);
  const double seconds = gain.rows / std::max(workers, 1);
  if (seconds >= least) return "";
  return fmt::format(
      "auto: about {:.1f} s of work for {} workers; devices are opened from {:g} s on, auto_from",
      seconds, workers, least);
}

}  // namespace melflow
