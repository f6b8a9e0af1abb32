// condition_kernel.cuh - launcher of the kernel that conditions frames (condition_phases.h) for the
// kernels of either path, which then read floats, one frame after another.

#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "cuda/mel_tables.h"
#include "cuda/number_types.h"

namespace melflow::cuda {

struct ConditionArguments {
  ConditionSettings settings;
  const void* samples;
  const std::uint32_t* offsets;
  const std::uint32_t* n_frames;
  float* frames;                 // [capacity, stride]
  std::uint32_t* frame_offsets;  // [capacity], position of each frame
};

void launch_condition(cudaStream_t stream, SampleType samples, const ConditionArguments& arguments,
                      std::uint32_t capacity);

}  // namespace melflow::cuda
