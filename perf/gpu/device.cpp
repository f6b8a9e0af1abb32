// Facts that need CUDA's runtime: a device's properties, and the rate of a copy inside its memory.

#include <cuda_runtime_api.h>

#include "bench.h"
#include "cuda/error.h"

namespace melflow::bench {
namespace {

void must(cudaError_t result, const char* call) {
  if (result != cudaSuccess)
    throw cuda::CudaError(std::string(call) + ": " + cudaGetErrorName(result) + ", " +
                          cudaGetErrorString(result));
}

std::string version(int v) {
  return std::to_string(v / 1000) + "." + std::to_string(v % 1000 / 10);
}

int attribute(cudaDeviceAttr which, int index) {
  int value = 0;
  must(cudaDeviceGetAttribute(&value, which, index), "cudaDeviceGetAttribute");
  return value;
}

struct Stream {
  Stream() {
    must(cudaStreamCreateWithFlags(&handle, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
  }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  ~Stream() { cudaStreamDestroy(handle); }
  cudaStream_t handle = nullptr;
};

struct Event {
  Event() { must(cudaEventCreate(&handle), "cudaEventCreate"); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  ~Event() { cudaEventDestroy(handle); }
  cudaEvent_t handle = nullptr;
};

}  // namespace

DeviceFacts device_facts(int index) {
  int driver = 0, runtime = 0;
  must(cudaDriverGetVersion(&driver), "cudaDriverGetVersion");
  must(cudaRuntimeGetVersion(&runtime), "cudaRuntimeGetVersion");
  DeviceFacts out;
  out.l2_bytes = static_cast<std::size_t>(attribute(cudaDevAttrL2CacheSize, index));
  out.properties = {
      {"driver_cuda", version(driver)},
      {"runtime_cuda", version(runtime)},
      {"multiprocessors", attribute(cudaDevAttrMultiProcessorCount, index)},
      {"l2_bytes", out.l2_bytes},
      {"shared_bytes_of_block", attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin, index)},
      {"memory_bus_bits", attribute(cudaDevAttrGlobalMemoryBusWidth, index)},
      {"copy_engines", attribute(cudaDevAttrAsyncEngineCount, index)}};
  return out;
}

double device_copy_rate(cuda::Gpu& gpu, const Effort& effort) {
  const std::size_t bytes = effort.copied_bytes / 2;
  must(cudaSetDevice(gpu.info().index), "cudaSetDevice");
  const Memory from(gpu, Memory::Kind::device, bytes), to(gpu, Memory::Kind::device, bytes);
  const Stream stream;
  const Event begin, end;
  must(cudaMemsetAsync(from.data(), 1, bytes, stream.handle), "cudaMemsetAsync");
  std::vector<double> seconds;
  for (int i = -3; i < effort.repetitions; ++i) {
    must(cudaEventRecord(begin.handle, stream.handle), "cudaEventRecord");
    must(cudaMemcpyAsync(to.data(), from.data(), bytes, cudaMemcpyDeviceToDevice, stream.handle),
         "cudaMemcpyAsync");
    must(cudaEventRecord(end.handle, stream.handle), "cudaEventRecord");
    must(cudaStreamSynchronize(stream.handle), "cudaStreamSynchronize");
    float milliseconds = 0;
    must(cudaEventElapsedTime(&milliseconds, begin.handle, end.handle), "cudaEventElapsedTime");
    if (i >= 0) seconds.push_back(static_cast<double>(milliseconds) / 1000);
  }
  return 2.0 * static_cast<double>(bytes) / median(seconds);
}

}  // namespace melflow::bench
