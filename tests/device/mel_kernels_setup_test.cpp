// The parts of MelKernels that need no device, and its messages where there is none.

#include <cuda_runtime_api.h>
#include <doctest/doctest.h>

#include <string>

#include "cuda/error.h"
#include "cuda/fused_shape.h"
#include "cuda/mel_kernels.h"
#include "stages/device/kernel_front_end.h"

namespace melflow::cuda::mel_kernels_setup_test {
namespace {

using O = MelOptions;

TEST_CASE("mel kernels: which front ends have a fused kernel") {
  O o;
  for (const int n_fft : fused_sizes) {
    o.n_fft = n_fft;
    CHECK(has_fused_kernel(kernel_front_end(MelPlan(o))));
  }
  o.n_mels = 20000;  // too many bands for shared memory
  CHECK_FALSE(has_fused_kernel(kernel_front_end(MelPlan(o))));
  o.n_mels = 80;
  o.n_fft = 401;
  CHECK_FALSE(has_fused_kernel(kernel_front_end(MelPlan(o))));
}

TEST_CASE("mel kernels: without a device the error names the call and CUDA's reason") {
  int count = 0;
  if (cudaGetDeviceCount(&count) == cudaSuccess && count > 0) return;
  try {
    const MelKernels kernels(kernel_front_end(MelPlan(O{})), {}, 10);
    FAIL("there is no device");
  } catch (const CudaError& error) {
    const std::string text = error.what();
    CAPTURE(text);
    CHECK(text.starts_with("cuda"));
    CHECK(text.find(": cudaError") != std::string::npos);
  }
}

}  // namespace
}  // namespace melflow::cuda::mel_kernels_setup_test
