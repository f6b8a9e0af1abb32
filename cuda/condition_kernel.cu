// A warp works on one frame at a time and continues with the frame one grid further.

#include "cuda/condition_kernel.cuh"

#include <algorithm>

#include "cuda/condition_phases.h"
#include "cuda/device.cuh"

namespace melflow::cuda {
namespace {

constexpr int condition_warps = 8;
constexpr std::uint32_t condition_blocks = 1024;

template <class Sample>
__global__ void __launch_bounds__(32 * condition_warps)
    condition_kernel(const __grid_constant__ ConditionArguments a) {
  __shared__ double sums[condition_warps][Condition::lanes];
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const unsigned warp = threadIdx.x / 32;
  const auto stride = static_cast<std::uint32_t>(a.settings.stride);
  const std::uint32_t n = *a.n_frames, step = gridDim.x * condition_warps;
  for (std::uint32_t i = blockIdx.x * condition_warps + warp; i < n; i += step) {
    const auto* samples = static_cast<const Sample*>(a.samples) + __ldg(a.offsets + i);
    if (a.settings.remove_dc) {
      Condition::sum(lane, a.settings, samples, sums[warp]);
      __syncwarp();
    }
    Condition::write(lane, a.settings, samples, sums[warp],
                     a.frames + static_cast<std::size_t>(i) * stride);
    if (lane == 0) a.frame_offsets[i] = i * stride;
    __syncwarp();
  }
}

}  // namespace

void launch_condition(cudaStream_t stream, SampleType samples, const ConditionArguments& arguments,
                      std::uint32_t capacity) {
  ConditionArguments copy = arguments;
  void* pointers[] = {&copy};
  const void* kernel = samples == SampleType::int16
                           ? reinterpret_cast<const void*>(condition_kernel<std::int16_t>)
                           : reinterpret_cast<const void*>(condition_kernel<float>);
  const std::uint32_t blocks =
      std::min((capacity + condition_warps - 1) / condition_warps, condition_blocks);
  check(cudaLaunchKernel(kernel, dim3(blocks), dim3(32U * condition_warps), pointers, 0, stream),
        "cudaLaunchKernel");
}

}  // namespace melflow::cuda
