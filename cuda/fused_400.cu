// The fused kernels for frames of 400 samples.

#include "cuda/fused_kernel.cuh"

namespace melflow::cuda {

FusedKernel fused_kernel_400(SampleType samples, NumberType operands) {
  return fused_kernel_of<Shape400>(samples, operands);
}

}  // namespace melflow::cuda
