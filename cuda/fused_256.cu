// The fused kernels for frames of 256 samples.

#include "cuda/fused_kernel.cuh"

namespace melflow::cuda {

FusedKernel fused_kernel_256(SampleType samples, NumberType operands) {
  return fused_kernel_of<Shape256>(samples, operands);
}

}  // namespace melflow::cuda
