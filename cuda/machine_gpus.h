// machine_gpus.h - the devices of this machine, in the build's own implementation: cuda_gpu.cpp
// with CUDA, no_gpu.cpp without.

#pragma once

#include "cuda/gpu.h"

namespace melflow::cuda {

Gpus& machine_gpus();

}  // namespace melflow::cuda
