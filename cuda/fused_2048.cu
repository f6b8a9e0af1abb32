// The fused kernels for frames of 2048 samples.

#include "cuda/fused_kernel.cuh"

namespace melflow::cuda {

FusedKernel fused_kernel_2048(SampleType samples, NumberType operands) {
  return fused_kernel_of<Shape2048>(samples, operands);
}

}  // namespace melflow::cuda
