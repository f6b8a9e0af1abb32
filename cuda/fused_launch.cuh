// fused_launch.cuh - the interface between the launcher (mel_kernels.cu) and the fused kernels
// (fused_*.cu).

#pragma once

#include <cstddef>
#include <cstdint>

#include "cuda/band_pieces.h"
#include "cuda/host_device.h"
#include "cuda/mel_tables.h"
#include "cuda/number_types.h"

namespace melflow::cuda {

struct FusedArguments {
  Settings settings;
  FusedView tables;
  const Piece* pieces;
  const float* band_weights;
  BandCounts bands;
  const void* samples;
  const std::uint32_t* offsets;
  const std::uint32_t* n_frames;
  Rows rows;
  // A frame's shared memory: its size, and the position of the partial sums in it.
  std::uint32_t frame_bytes, partials_at;
};

using FusedKernel = void (*)(FusedArguments);

FusedKernel fused_kernel_256(SampleType samples, NumberType operands);
FusedKernel fused_kernel_400(SampleType samples, NumberType operands);
FusedKernel fused_kernel_512(SampleType samples, NumberType operands);
FusedKernel fused_kernel_1024(SampleType samples, NumberType operands);
FusedKernel fused_kernel_2048(SampleType samples, NumberType operands);

}  // namespace melflow::cuda
