// slot_load.h - what recordings take in a slot of a device, so that its memory is as large as its
// batches and never grows.
//
// In:  a front end, how recordings are cut, lengths in samples.
// Out: samples and frames, as CudaBatch packs them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "cuda/slot.h"
#include "stages/features/mel/mel_plan.h"
#include "stages/features/mel/mel_signal.h"
#include "stages/items.h"

namespace melflow {

// What is put into a slot begins at such a multiple of samples, so that frames are as well aligned
// there as they are in the part. It takes whole multiples, too: what a batch sends does not depend
// on which of its parts comes last.
constexpr std::int64_t kPartAlignment = 8;
constexpr std::int64_t padded_count(std::int64_t samples) {
  return (samples + kPartAlignment - 1) / kPartAlignment * kPartAlignment;
}

// Samples go to the device as they were decoded; else the host conditions them, frame by frame, to
// floats.
inline bool goes_raw(const MelPlan& plan) {
  return takes_plain_samples(plan) || is_conditioned_by_frame(plan);
}

struct SlotLoad {
  std::int64_t samples = 0;  // with alignment
  std::int64_t frames = 0;
};

// Of a whole recording of `samples` samples, exactly: cut into the windows of `grid`, those that
// fall on each other once, or not cut.
SlotLoad slot_load(const MelPlan& plan, const std::optional<WindowGrid>& grid,
                   std::int64_t samples);

// For batches of `batch_bytes` of recordings that have `typical_samples` each, or of longer ones in
// blocks, and for any one block of at most `block_bytes`.
cuda::SlotSize slot_size(const MelPlan& plan, const std::optional<WindowGrid>& grid,
                         std::size_t batch_bytes, std::int64_t typical_samples,
                         std::size_t block_bytes);

}  // namespace melflow
