// machine_gpus.h - the devices of this machine, in the implementation of the build: cuda_gpu.cpp
// with CUDA, no_gpu.cpp without.

#pragma once

#include <memory>

#include "cuda/gpu.h"

namespace melflow::cuda {

// Makes the implementation for this machine; does not look for devices yet.
std::unique_ptr<Gpus> look_for_gpus();

}  // namespace melflow::cuda
