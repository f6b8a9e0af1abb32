// A warp works on one frame at a time and continues with the frame one grid further.

#include <algorithm>

#include "cuda/any_size_kernels.cuh"
#include "cuda/any_size_phases.h"
#include "cuda/device.cuh"

namespace melflow::cuda {
namespace {

constexpr int window_warps = 8;
constexpr std::uint32_t shared_bytes = 48U << 10;  // what every device allows without opt-in

__device__ std::uint32_t frames_of(const Chunk& chunk) {
  const std::uint32_t n_frames = *chunk.n_frames;
  return n_frames <= chunk.first_frame ? 0 : min(n_frames - chunk.first_frame, chunk.frames);
}

template <class Sample>
__global__ void __launch_bounds__(32 * window_warps)
    window_kernel(const __grid_constant__ WindowArguments a) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const std::uint32_t n = frames_of(a.chunk), step = gridDim.x * window_warps;
  for (std::uint32_t i = blockIdx.x * window_warps + threadIdx.x / 32; i < n; i += step) {
    const auto* samples =
        static_cast<const Sample*>(a.samples) + __ldg(a.offsets + a.chunk.first_frame + i);
    AnySize::window_frame(lane, a.settings, a.window, samples,
                          a.frames + static_cast<std::size_t>(i) * a.settings.n_fft);
  }
  // An earlier batch could have left infinite values, and cuFFT may compute several frames as one.
  const std::size_t end = static_cast<std::size_t>(a.transformed) * a.settings.n_fft;
  const std::size_t threads = static_cast<std::size_t>(gridDim.x) * blockDim.x;
  for (std::size_t i = static_cast<std::size_t>(n) * a.settings.n_fft +
                       static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
       i < end; i += threads)
    a.frames[i] = 0.0F;
}

template <bool stored>
__global__ void levels_kernel(const __grid_constant__ LevelsArguments a) {
  const Settings& s = a.settings;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const std::uint32_t warp = threadIdx.x / 32, warps = blockDim.x / 32;
  const BandView bands{a.bands, a.pieces, a.band_weights};
  Bins bins;
  if constexpr (stored) {
    bins.partials = reinterpret_cast<float*>(shared_memory + warp * a.warp_bytes);
    bins.stored = bins.partials + a.bands.partials();
  } else {
    bins.partials =
        a.partials + static_cast<std::size_t>(blockIdx.x * warps + warp) * a.bands.partials();
  }
  clear_partials<32>(lane, a.bands, bins.partials);
  __syncwarp();
  const std::uint32_t n = frames_of(a.chunk), step = gridDim.x * warps;
  for (std::uint32_t i = blockIdx.x * warps + warp; i < n; i += step) {
    bins.spectrum = a.spectra + static_cast<std::size_t>(i) * s.n_bins;
    if constexpr (stored) {
      AnySize::load_bins(lane, s, bins);
      __syncwarp();
    }
    if (s.is_mel) {
      AnySize::sum_bands(lane, s, bands, bins);
      __syncwarp();
    }
    AnySize::write(lane, s, bands, bins, a.rows, a.chunk.first_frame + i);
    __syncwarp();
  }
}

std::uint32_t blocks_for(std::uint32_t frames, int warps) {
  const auto of_block = static_cast<std::uint32_t>(warps);
  return std::min((frames + of_block - 1) / of_block, any_size_blocks);
}

template <class Arguments>
void launch_kernel(cudaStream_t stream, void (*kernel)(Arguments), const Arguments& arguments,
                   int warps, std::uint32_t bytes) {
  const Arguments copy = arguments;
  void* pointers[] = {const_cast<Arguments*>(&copy)};
  check(cudaLaunchKernel(reinterpret_cast<const void*>(kernel),
                         dim3(blocks_for(copy.chunk.frames, warps)),
                         dim3(32U * static_cast<unsigned>(warps)), pointers, bytes, stream),
        "cudaLaunchKernel");
}

}  // namespace

LevelsLayout levels_layout(const AnySizeTables& tables) {
  const std::size_t bytes =
      (4 * (static_cast<std::size_t>(tables.settings.n_bins) + tables.bands.counts().partials()) +
       15) /
      16 * 16;
  if (bytes > shared_bytes) return {8, 0};
  return {static_cast<int>(std::min<std::size_t>(8, shared_bytes / bytes)),
          static_cast<std::uint32_t>(bytes)};
}

void launch_window(cudaStream_t stream, SampleType samples, const WindowArguments& arguments) {
  launch_kernel(stream,
                samples == SampleType::int16 ? window_kernel<std::int16_t> : window_kernel<float>,
                arguments, window_warps, 0);
}

void launch_levels(cudaStream_t stream, const LevelsLayout& layout,
                   const LevelsArguments& arguments) {
  launch_kernel(stream, layout.warp_bytes > 0 ? levels_kernel<true> : levels_kernel<false>,
                arguments, layout.warps,
                layout.warp_bytes * static_cast<std::uint32_t>(layout.warps));
}

}  // namespace melflow::cuda
