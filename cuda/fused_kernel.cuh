// fused_kernel.cuh - the frame of the fused kernel: which warp takes which frames, and the barriers
// between the phases of fused_phases.h. Included by fused_*.cu, one for each size.

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "cuda/device.cuh"
#include "cuda/fused_launch.cuh"
#include "cuda/fused_phases.h"

namespace melflow::cuda {

// Registers, 65,536 of them, limit how many blocks of 128 threads a processor holds. Tables and the
// next frame's samples take many; floats twice as many as int16.
template <class S, class Sample>
constexpr int fused_blocks = S::points > 512                          ? 3
                             : S::keeps_tables && sizeof(Sample) == 2 ? 5
                                                                      : 4;

template <class S, class Sample, NumberType operands>
__global__ void __launch_bounds__(32 * fused_warps, fused_blocks<S, Sample>)
    fused_kernel(const __grid_constant__ FusedArguments a) {
  using F = Fused<S, Sample, operands>;
  const int lane = static_cast<int>(threadIdx.x) % S::lanes;
  const unsigned group = threadIdx.x / S::lanes;  // index among the block's frames

  auto* const weights = reinterpret_cast<float*>(shared_memory);
  auto* const pieces = reinterpret_cast<Piece*>(weights + a.bands.weights);
  for (int i = static_cast<int>(threadIdx.x); i < a.bands.pieces(); i += 32 * fused_warps)
    pieces[i] = a.pieces[i];
  for (int i = static_cast<int>(threadIdx.x); i < a.bands.weights; i += 32 * fused_warps)
    weights[i] = a.band_weights[i];
  const BandView bands{a.bands, pieces, weights};
  const typename F::Shared shared{shared_memory + table_bytes(a.bands) + group * a.frame_bytes,
                                  a.partials_at};
  clear_partials<S::lanes>(lane, a.bands, shared.partials());
  __syncthreads();

  const std::uint32_t n_frames = *a.n_frames;
  const auto* samples = static_cast<const Sample*>(a.samples);
  typename F::Lane state;
  F::start(lane, a.tables, state);

  // All lanes of a warp loop together; a half without a frame repeats the last one without output.
  constexpr std::uint32_t warp_frames = S::frames;
  const std::uint32_t step = gridDim.x * fused_warps * warp_frames;
  std::uint32_t base = (blockIdx.x * fused_warps + threadIdx.x / 32) * warp_frames;
  const std::uint32_t in_warp = group % warp_frames;
  const auto offset_of = [&](std::uint32_t frame) {
    return __ldg(a.offsets + min(frame, n_frames - 1));
  };
  if (S::keeps_tables && base < n_frames)
    F::fetch(lane, a.settings, samples, offset_of(base + in_warp), state);
  for (; base < n_frames; base += step) {
    const std::uint32_t frame = base + in_warp;
    if (!S::keeps_tables) F::fetch(lane, a.settings, samples, offset_of(frame), state);
    F::first(lane, shared, state);
    if (S::keeps_tables && base + step < n_frames)
      F::fetch(lane, a.settings, samples, offset_of(frame + step), state);
    __syncwarp();
    F::middle_load(lane, shared, state);
    __syncwarp();
    F::middle_store(lane, shared, state);
    __syncwarp();
    F::last(lane, shared, state);
    __syncwarp();
    F::store_power(lane, a.settings, shared, state);
    __syncwarp();
    if (a.settings.has_exponent) {
      F::exponent(lane, a.settings, shared);
      __syncwarp();
    }
    if (a.settings.is_mel) {
      F::sum_bands(lane, bands, shared);
      __syncwarp();
      if (frame < n_frames) F::write_mel(lane, a.settings, a.bands, shared, a.rows, frame);
    } else {
      if (frame < n_frames) F::write_spectrum(lane, a.settings, shared, a.rows, frame);
      __syncwarp();  // the next frame's points overwrite the power
    }
  }
}

// The kernels of one size.
template <class S>
FusedKernel fused_kernel_of(SampleType samples, NumberType operands) {
  const bool is_int16 = samples == SampleType::int16;
  switch (operands) {
    case NumberType::float32:
      return is_int16 ? fused_kernel<S, std::int16_t, NumberType::float32>
                      : fused_kernel<S, float, NumberType::float32>;
    case NumberType::float16:
      return is_int16 ? fused_kernel<S, std::int16_t, NumberType::float16>
                      : fused_kernel<S, float, NumberType::float16>;
    case NumberType::bfloat16:
      return is_int16 ? fused_kernel<S, std::int16_t, NumberType::bfloat16>
                      : fused_kernel<S, float, NumberType::bfloat16>;
    default:  // no operands of the kernel
      return nullptr;
  }
}

}  // namespace melflow::cuda
