// slot_load.h - computes the room that recordings take in a slot of a device, so that a slot is
// made large enough once and never grows; and decides by an estimate whether devices are worth
// opening for a job. That rule is not based on measurements of devices: it keeps cheap and short
// jobs on the processor.
//
// In:  a front end, how recordings are cut, lengths in samples.
// Out: samples and frames, as CudaBatch packs them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "cuda/slot.h"
#include "stages/features/mel/mel_plan.h"
#include "stages/features/mel/mel_signal.h"
#include "stages/items.h"

namespace melflow {

// A part begins at a multiple of this number of samples in a slot, so that frames are as well
// aligned there as in the part; its size is rounded up to a multiple, so that the size of a batch
// does not depend on the order of its parts.
constexpr std::int64_t kPartAlignment = 8;
constexpr std::int64_t padded_count(std::int64_t samples) {
  return (samples + kPartAlignment - 1) / kPartAlignment * kPartAlignment;
}

// Whether samples are sent to the device as decoded; if not, the host conditions them frame by
// frame and sends floats.
inline bool goes_raw(const MelPlan& plan) {
  return takes_plain_samples(plan) || is_conditioned_by_frame(plan);
}

struct SlotLoad {
  std::int64_t samples = 0;  // including alignment
  std::int64_t frames = 0;
};

// Returns the exact load of a whole recording of `samples` samples: cut into the windows of `grid`,
// where windows with the same samples count once, or uncut without a grid.
SlotLoad slot_load(const MelPlan& plan, const std::optional<WindowGrid>& grid,
                   std::int64_t samples);

// Returns the size of slots for batches of `batch_bytes` bytes, holding recordings of
// `typical_samples` samples or blocks of longer ones; a slot has room for any single block of at
// most `block_bytes` bytes.
cuda::SlotSize slot_size(const MelPlan& plan, const std::optional<WindowGrid>& grid,
                         std::size_t batch_bytes, std::int64_t typical_samples,
                         std::size_t block_bytes);

// Rough estimates of the time [s] that one core of the processor takes.
struct DeviceGain {
  double rows = 0;     // to compute rows, which a device would take over
  double packing = 0;  // to put samples into page-locked memory and to take rows out of it
};
// Returns the estimates for `files` recordings with `samples` samples in total.
DeviceGain device_gain(const MelPlan& plan, const std::optional<WindowGrid>& grid, double files,
                       double samples);

// Returns why the processor keeps the job; "" where devices are to be opened: when computing rows
// takes at least twice as long as packing, and `workers` cores would need `least` seconds or more;
// always when `least` is 0.
std::string why_on_cpu(const DeviceGain& gain, int workers, double least);

}  // namespace melflow
