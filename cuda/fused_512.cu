// The fused kernels for frames of 512 samples.

#include "cuda/fused_kernel.cuh"

namespace melflow::cuda {

FusedKernel fused_kernel_512(SampleType samples, NumberType operands) {
  return fused_kernel_of<Shape512>(samples, operands);
}

}  // namespace melflow::cuda
