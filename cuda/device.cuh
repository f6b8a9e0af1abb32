// device.cuh - checked calls, owners of CUDA's resources, and the shared memory of kernels.

#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <span>
#include <string>
#include <utility>

#include "cuda/error.h"

namespace melflow::cuda {

// A block's dynamic shared memory, of the size given at launch.
extern __shared__ __align__(16) unsigned char shared_memory[];

inline void check(cudaError_t result, const char* call) {
  if (result == cudaSuccess) return;
  cudaGetLastError();  // or a library that checks later would take it for its own
  throw CudaError(std::string(call) + ": " + cudaGetErrorName(result) + ", " +
                  cudaGetErrorString(result));
}

// A table in device memory that is read-only after the upload. Throws CudaError. Move-only.
template <class T>
class DeviceTable {
 public:
  DeviceTable() = default;
  explicit DeviceTable(std::span<const T> values) {
    if (values.empty()) return;
    check(cudaMalloc(&data_, values.size_bytes()), "cudaMalloc");
    const cudaError_t copied =
        cudaMemcpy(data_, values.data(), values.size_bytes(), cudaMemcpyHostToDevice);
    if (copied == cudaSuccess) return;
    cudaFree(data_);
    check(copied, "cudaMemcpy");
  }
  DeviceTable(DeviceTable&& other) noexcept : data_(std::exchange(other.data_, nullptr)) {}
  DeviceTable& operator=(DeviceTable&& other) noexcept {
    std::swap(data_, other.data_);
    return *this;
  }
  ~DeviceTable() { cudaFree(data_); }

  const T* data() const { return static_cast<const T*>(data_); }

 private:
  void* data_ = nullptr;
};

}  // namespace melflow::cuda
