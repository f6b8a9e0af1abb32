// any_size_kernels.cuh - launchers of the kernels around a batched transform (any_size_phases.h).
//
// Batches are processed in chunks, so that frames and spectra stay in a device's cache and the work
// area stays small: a kernel takes frames [first_frame, first_frame + chunk), but none from
// *n_frames on.

#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "cuda/band_pieces.h"
#include "cuda/complex.h"
#include "cuda/mel_tables.h"
#include "cuda/number_types.h"

namespace melflow::cuda {

struct Chunk {
  std::uint32_t first_frame = 0;
  std::uint32_t frames = 0;
  const std::uint32_t* n_frames = nullptr;  // of the batch, in device memory
};

struct WindowArguments {
  Settings settings;
  const float* window;
  const void* samples;
  const std::uint32_t* offsets;
  Chunk chunk;
  std::uint32_t transformed;  // frames that the transform takes; those without samples are zeroed
  float* frames;              // [transformed, n_fft]
};

struct LevelsArguments {
  Settings settings;
  const Piece* pieces;
  const float* band_weights;
  BandCounts bands;
  const Complex* spectra;  // [chunk.frames, n_bins]
  Chunk chunk;
  Rows rows;
  // [warps of the grid, BandCounts::partials()]; null: in shared memory, after the bins.
  float* partials;
  std::uint32_t warp_bytes;  // of shared memory
};

// The launch layout of the second kernel for a front end.
struct LevelsLayout {
  int warps = 1;                 // per block
  std::uint32_t warp_bytes = 0;  // of shared memory; 0: bins and partials do not fit into it
};
LevelsLayout levels_layout(const AnySizeTables& tables);

// The largest number of blocks in a launch.
constexpr std::uint32_t any_size_blocks = 1024;

void launch_window(cudaStream_t stream, SampleType samples, const WindowArguments& arguments);
void launch_levels(cudaStream_t stream, const LevelsLayout& layout,
                   const LevelsArguments& arguments);

}  // namespace melflow::cuda
