// The fused kernels for frames of 1024 samples.

#include "cuda/fused_kernel.cuh"

namespace melflow::cuda {

FusedKernel fused_kernel_1024(SampleType samples, NumberType operands) {
  return fused_kernel_of<Shape1024>(samples, operands);
}

}  // namespace melflow::cuda
