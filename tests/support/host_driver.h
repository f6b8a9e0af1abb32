// host_driver.h - runs the phases of the kernels on the host, a lane after another.
//
// In:  a batch in the kernels' work format (mel_tables.h), in host memory.
// Out: its rows, from the same source that a device runs. Slow.

#pragma once

#include <cstddef>
#include <cstdint>

#include "cuda/mel_tables.h"
#include "cuda/number_types.h"

namespace melflow::cuda {

struct HostBatch {
  const void* samples = nullptr;
  SampleType sample_type = SampleType::int16;
  const std::uint32_t* offsets = nullptr;  // [n_frames]
  std::size_t n_frames = 0;
};

// Lanes of a phase run in this order; rows that differ by it show that a phase reads what another
// lane writes in it.
enum class LaneOrder { up, down };

void run_fused(const FusedTables& tables, NumberType operands, const HostBatch& batch,
               const Rows& rows, LaneOrder order = LaneOrder::up);

// Samples as they were decoded to conditioned frames [n_frames, stride], and their places.
void run_condition(const ConditionSettings& settings, const HostBatch& batch, float* frames,
                   std::uint32_t* offsets, LaneOrder order = LaneOrder::up);

// Before the transform: windowed frames [n_frames, n_fft].
void run_window(const AnySizeTables& tables, const HostBatch& batch, float* frames);
// Behind it: spectra [n_frames, n_bins] to rows.
void run_levels(const AnySizeTables& tables, const Complex* spectra, std::size_t n_frames,
                const Rows& rows, bool in_shared_memory, LaneOrder order = LaneOrder::up);

}  // namespace melflow::cuda
