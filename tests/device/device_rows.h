// Computes rows of a batch with MelKernels on the device of these tests, real or emulated.
#pragma once

#include <cuda_runtime_api.h>
#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "cuda/mel_kernels.h"
#include "stages/device/kernel_front_end.h"
#include "tests/support/kernel_checks.h"
#include "tests/support/skip.h"

namespace melflow::cuda::testing {

inline bool has_device(const std::string& test) {
  int count = 0;
  const cudaError_t result = cudaGetDeviceCount(&count);
  if (result == cudaSuccess && count > 0) return true;
  test::skip(std::string("no CUDA device (") + cudaGetErrorString(result) + "): " + test);
  return false;
}
#define MELFLOW_NEEDS_DEVICE(test) \
  if (!has_device(test)) return

inline void check_call(cudaError_t result) {
  REQUIRE(std::string(cudaGetErrorString(result)) == "no error");
}

// Device memory with a copy of host memory, or filled with NaN.
class Memory {
 public:
  explicit Memory(std::size_t bytes) : bytes_(bytes) {
    check_call(cudaMalloc(&data_, std::max<std::size_t>(bytes, 1)));
    check_call(cudaMemset(data_, 0xFF, bytes));
  }
  Memory(const void* from, std::size_t bytes) : Memory(bytes) {
    check_call(cudaMemcpy(data_, from, bytes, cudaMemcpyHostToDevice));
  }
  ~Memory() { cudaFree(data_); }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  void* data() const { return data_; }
  void read(void* to) const { check_call(cudaMemcpy(to, data_, bytes_, cudaMemcpyDeviceToHost)); }

 private:
  void* data_ = nullptr;
  std::size_t bytes_;
};

struct Stream {
  Stream() { check_call(cudaStreamCreate(&handle)); }
  ~Stream() { cudaStreamDestroy(handle); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  cudaStream_t handle = nullptr;
};

// A batch and its rows on the device.
class Job {
 public:
  Job(const MelPlan& plan, const Batch& batch, SampleType type, const KernelOptions& options)
      : kernels_(kernel_front_end(plan), options, static_cast<std::uint32_t>(batch.n_frames())),
        rows_host_(options.rows, batch.n_frames() * static_cast<std::size_t>(plan.columns())),
        samples_(batch.samples(type),
                 bytes_of(type) *
                     (type == SampleType::int16 ? batch.int16.size() : batch.float32.size())),
        offsets_(batch.offsets.data(), 4 * batch.n_frames()),
        n_frames_(sizeof(std::uint32_t)),
        rows_(rows_host_.size_bytes()),
        work_(kernels_.work_bytes()) {
    launch_.samples = samples_.data();
    launch_.sample_type = type;
    launch_.offsets = static_cast<const std::uint32_t*>(offsets_.data());
    launch_.n_frames = static_cast<const std::uint32_t*>(n_frames_.data());
    launch_.capacity = static_cast<std::uint32_t>(batch.n_frames());
    launch_.rows = rows_.data();
    launch_.work = work_.data();
  }

  MelKernels& kernels() { return kernels_; }
  void enqueue(cudaStream_t stream) { kernels_.launch(stream, launch_); }
  void set_count(std::size_t n_frames) {
    const auto n = static_cast<std::uint32_t>(n_frames);
    check_call(cudaMemcpy(n_frames_.data(), &n, sizeof n, cudaMemcpyHostToDevice));
    check_call(cudaMemset(rows_.data(), 0xFF, rows_host_.size_bytes()));
  }
  const RowBuffer& rows() {
    check_call(cudaDeviceSynchronize());
    rows_.read(rows_host_.data());
    return rows_host_;
  }
  std::vector<double> values() { return rows().values(); }
  const Memory& work() const { return work_; }

 private:
  MelKernels kernels_;
  RowBuffer rows_host_;
  Memory samples_, offsets_, n_frames_, rows_, work_;
  MelKernels::Launch launch_;
};

inline std::vector<double> rows_of(const MelOptions& options, const Batch& batch, SampleType type,
                                   const KernelOptions& kernel_options) {
  const Stream stream;
  Job job(MelPlan(options), batch, type, kernel_options);
  job.set_count(batch.n_frames());
  job.enqueue(stream.handle);
  return job.values();
}

}  // namespace melflow::cuda::testing
