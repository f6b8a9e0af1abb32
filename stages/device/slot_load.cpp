#include "stages/device/slot_load.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include <fmt/format.h>

namespace melflow {
namespace {

// A batch is full when another part like its last would be too much; it may be that much longer.
constexpr double kHeadroom = 1.25;

// Frames of an utterance that reach over its ends; each needs a copy of its samples.
std::int64_t frames_over_ends(const MelPlan& plan, std::int64_t samples, std::int64_t frames) {
  std::int64_t n = 0;
  while (n < frames && plan.start(n) < 0) ++n;
  for (std::int64_t t = frames; t > n && plan.start(t - 1) + plan.frame_length() > samples; --t)
    ++n;
  return n;
}

std::int64_t packed_frames(const MelPlan& plan, std::int64_t frames) {
  return frames * padded_count(plan.frame_length());
}

// The number of different windows in so many long windows.
std::int64_t distinct_windows(const WindowGrid& g, std::int64_t longs) {
  const std::int64_t step = std::gcd(g.long_hop, g.short_hop);
  if (g.per_long == 1) return longs;
  std::vector<bool> is_there(static_cast<std::size_t>(g.start(longs * g.per_long - 1) / step) + 1);
  std::int64_t n = 0;
  for (std::int64_t row = 0; row < longs * g.per_long; ++row) {
    const auto at = static_cast<std::size_t>(g.start(row) / step);
    n += is_there[at] ? 0 : 1;
    is_there[at] = true;
  }
  return n;
}

}  // namespace

SlotLoad slot_load(const MelPlan& plan, const std::optional<WindowGrid>& grid,
                   std::int64_t samples) {
  SlotLoad out;
  std::int64_t over = 0;
  if (!grid) {
    out.frames = plan.frames(samples);
    over = frames_over_ends(plan, samples, out.frames);
  } else {
    const WindowGrid& g = *grid;
    const std::int64_t longs =
        samples < g.long_length ? 0 : (samples - g.long_length) / g.long_hop + 1;
    const std::int64_t windows = longs > 0 ? distinct_windows(g, longs) : 0;
    const std::int64_t of_window = plan.frames(g.length);
    out.frames = windows * of_window;
    over = windows * frames_over_ends(plan, g.length, of_window);
  }
  out.samples = goes_raw(plan) ? padded_count(samples) + packed_frames(plan, over)
                               : packed_frames(plan, out.frames);
  return out;
}

cuda::SlotSize slot_size(const MelPlan& plan, const std::optional<WindowGrid>& grid,
                         std::size_t batch_bytes, std::int64_t typical_samples,
                         std::size_t block_bytes) {
  constexpr std::int64_t kInt16 = sizeof(std::int16_t), kFloat = sizeof(float);
  const std::int64_t sample_bytes = goes_raw(plan) ? kInt16 : kFloat;
  // One more window for a padded tail, which shares no frames with others.
  const auto with_tail = [&](std::int64_t samples) {
    SlotLoad load = slot_load(plan, grid, samples);
    const std::int64_t more = grid ? grid->per_long * plan.frames(grid->length) : 0;
    load.frames += more;
    load.samples += packed_frames(plan, more);
    return load;
  };
  // Counted in int16 samples, which have the most frames per byte.
  const std::int64_t longest = static_cast<std::int64_t>(block_bytes) / kInt16;
  const std::int64_t typical =
      std::clamp<std::int64_t>(typical_samples, 1, std::max<std::int64_t>(longest, 1));
  const SlotLoad each = slot_load(plan, grid, typical);
  const double files =
      kHeadroom * static_cast<double>(batch_bytes) / static_cast<double>(kInt16 * typical);
  // A block may begin in mid-recording, with the samples that frames across the seam need.
  SlotLoad block = with_tail(longest + (grid ? grid->long_hop : plan.context()));
  SlotLoad block_of_floats = with_tail(static_cast<std::int64_t>(block_bytes) / kFloat +
                                       (grid ? grid->long_hop : plan.context()));
  const double bytes = std::max({files * static_cast<double>(sample_bytes * each.samples),
                                 static_cast<double>(sample_bytes * block.samples),
                                 static_cast<double>(kFloat * block_of_floats.samples)});
  const double frames =
      std::max(files * static_cast<double>(each.frames) + 1, static_cast<double>(block.frames) + 2);
  return {static_cast<std::size_t>(bytes),
          static_cast<std::uint32_t>(std::min<double>(cuda::MelKernels::frame_limit, frames))};
}

DeviceGain device_gain(const MelPlan& plan, const std::optional<WindowGrid>& grid, double files,
                       double samples) {
  if (files < 1 || samples < 1) return {};
  // A recording of average length, or a part of a very long one.
  constexpr double kLongest = 1 << 22;
  const double each = samples / files;
  const double part = std::min(each, kLongest);
  const SlotLoad load = slot_load(plan, grid, static_cast<std::int64_t>(part));
  const double parts = files * each / part;
  const double frames = parts * static_cast<double>(load.frames);
  // The time of a frame of 512 samples and 32 bands with AVX-512 on an AMD EPYC (Zen 5), scaled to
  // others by the transform's steps.
  constexpr double kOf512 = 0.127e-6;
  // Bytes that one core copies per second.
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
