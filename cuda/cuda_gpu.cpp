// cuda_gpu.cpp - gpu.h on the CUDA runtime.

#include <cuda_runtime.h>

#include <array>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "cuda/cufft_library.h"
#include "cuda/error.h"
#include "cuda/machine_gpus.h"
#include "cuda/mel_kernels.h"
#include "cuda/shared_library.h"

namespace melflow::cuda {
namespace {

void must(cudaError_t result, const char* call, int device) {
  if (result == cudaSuccess) return;
  cudaGetLastError();  // clears a non-sticky error, so that no later call reports it
  throw CudaError(std::string(call) + " on device " + std::to_string(device) + ": " +
                  cudaGetErrorName(result) + ", " + cudaGetErrorString(result));
}

// Selects the device: the runtime keeps a current one for each thread.
void use(int device) { must(cudaSetDevice(device), "cudaSetDevice", device); }

class CudaMel final : public MelProgram {
 public:
  CudaMel(int device, const FrontEnd& front_end, const KernelOptions& options,
          std::uint32_t most_frames)
      : device_(device), kernels_(std::in_place, front_end, options, most_frames) {
    // Copies of tables may return before they arrive, and streams do not wait for them. They are on
    // the null stream, so only that is synchronised here.
    must(cudaStreamSynchronize(nullptr), "cudaStreamSynchronize", device_);
  }
  CudaMel(const CudaMel&) = delete;
  CudaMel& operator=(const CudaMel&) = delete;
  ~CudaMel() override {
    cudaSetDevice(device_);
    kernels_.reset();
  }
  [[nodiscard]] std::string description() const override { return kernels_->description(); }
  [[nodiscard]] std::size_t scratch_bytes() const override { return kernels_->work_bytes(); }
  MelKernels& kernels() { return *kernels_; }

 private:
  int device_;
  std::optional<MelKernels> kernels_;
};

class CudaRecording final : public Recording {
 public:
  CudaRecording(int device, cudaGraph_t graph) : device_(device) {
    const cudaError_t result = cudaGraphInstantiate(&executable_, graph, 0);
    cudaGraphDestroy(graph);
    must(result, "cudaGraphInstantiate", device_);
  }
  CudaRecording(const CudaRecording&) = delete;
  CudaRecording& operator=(const CudaRecording&) = delete;
  ~CudaRecording() override {
    cudaSetDevice(device_);
    cudaGraphExecDestroy(executable_);
  }
  [[nodiscard]] cudaGraphExec_t executable() const { return executable_; }

 private:
  int device_;
  cudaGraphExec_t executable_ = nullptr;
};

class CudaStream final : public Stream {
 public:
  explicit CudaStream(int device) : device_(device) {
    use(device_);
    try {
      must(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreateWithFlags",
           device_);
      for (cudaEvent_t& event : events_) must(cudaEventCreate(&event), "cudaEventCreate", device_);
    } catch (...) {
      release();
      throw;
    }
  }
  CudaStream(const CudaStream&) = delete;
  CudaStream& operator=(const CudaStream&) = delete;
  ~CudaStream() override {
    cudaSetDevice(device_);
    cudaStreamSynchronize(stream_);
    release();
  }

  void copy_in(void* device, const void* host, std::size_t bytes) override {
    use(device_);
    must(cudaMemcpyAsync(device, host, bytes, cudaMemcpyHostToDevice, stream_),
         "cudaMemcpyAsync to the device", device_);
  }
  void copy_out(void* host, const void* device, std::size_t bytes) override {
    use(device_);
    must(cudaMemcpyAsync(host, device, bytes, cudaMemcpyDeviceToHost, stream_),
         "cudaMemcpyAsync from the device", device_);
  }

  void mel(MelProgram& program, const MelWork& work) override {
    use(device_);
    MelKernels::Launch launch;
    launch.samples = work.samples;
    launch.sample_type = work.sample_type;
    launch.offsets = work.offsets;
    launch.n_frames = work.n_frames;
    launch.capacity = work.capacity;
    launch.rows = work.rows;
    launch.work = work.scratch;
    static_cast<CudaMel&>(program).kernels().launch(stream_, launch);
  }

  void call(void (*function)(void*), void* argument) override {
    use(device_);
    must(cudaLaunchHostFunc(stream_, function, argument), "cudaLaunchHostFunc", device_);
  }

  [[nodiscard]] std::unique_ptr<Recording> record(const std::function<void()>& work) override {
    use(device_);
    must(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal),
         "cudaStreamBeginCapture", device_);
    is_recording_ = true;
    cudaGraph_t graph = nullptr;
    try {
      work();
    } catch (...) {
      is_recording_ = false;
      cudaStreamEndCapture(stream_, &graph);
      if (graph != nullptr) cudaGraphDestroy(graph);
      throw;
    }
    is_recording_ = false;
    must(cudaStreamEndCapture(stream_, &graph), "cudaStreamEndCapture", device_);
    return std::make_unique<CudaRecording>(device_, graph);
  }

  void launch(Recording& recording) override {
    use(device_);
    must(cudaGraphLaunch(static_cast<CudaRecording&>(recording).executable(), stream_),
         "cudaGraphLaunch", device_);
  }

  void mark(int place) override {
    use(device_);
    cudaEvent_t& event = events_.at(static_cast<std::size_t>(place));
    if (is_recording_)
      must(cudaEventRecordWithFlags(event, stream_, cudaEventRecordExternal),
           "cudaEventRecordWithFlags", device_);
    else
      must(cudaEventRecord(event, stream_), "cudaEventRecord", device_);
  }

  [[nodiscard]] double between(int from, int to) override {
    use(device_);
    float milliseconds = 0;
    must(cudaEventElapsedTime(&milliseconds, events_.at(static_cast<std::size_t>(from)),
                              events_.at(static_cast<std::size_t>(to))),
         "cudaEventElapsedTime", device_);
    return static_cast<double>(milliseconds) / 1000;
  }

  void check() override {
    use(device_);
    const cudaError_t result = cudaStreamQuery(stream_);
    if (result != cudaErrorNotReady) must(result, "cudaStreamQuery", device_);
  }

  void wait() override {
    use(device_);
    must(cudaStreamSynchronize(stream_), "cudaStreamSynchronize", device_);
  }

 private:
  void release() noexcept {
    for (cudaEvent_t event : events_)
      if (event != nullptr) cudaEventDestroy(event);
    if (stream_ != nullptr) cudaStreamDestroy(stream_);
  }

  int device_;
  cudaStream_t stream_ = nullptr;
  bool is_recording_ = false;
  std::array<cudaEvent_t, places> events_{};
};

// Asks only the driver: creates no context on the device.
GpuInfo info_of(int index) {
  cudaDeviceProp properties{};
  must(cudaGetDeviceProperties(&properties, index), "cudaGetDeviceProperties", index);
  GpuInfo out;
  out.index = index;
  out.name = properties.name;
  out.architecture = "sm_" + std::to_string(properties.major) + std::to_string(properties.minor);
  out.memory = properties.totalGlobalMem;
  std::array<char, 32> bus{};
  // Only the report needs it, so an error is ignored.
  if (cudaDeviceGetPCIBusId(bus.data(), static_cast<int>(bus.size()), index) == cudaSuccess)
    out.pci_bus_id = bus.data();
  else
    cudaGetLastError();
  return out;
}

class CudaGpu final : public Gpu {
 public:
  explicit CudaGpu(int index) : index_(index) { use(index_); }

  [[nodiscard]] GpuInfo info() const override { return info_of(index_); }

  [[nodiscard]] void* allocate(std::size_t bytes) override {
    use(index_);
    void* memory = nullptr;
    const cudaError_t result = cudaMalloc(&memory, bytes);
    if (result == cudaErrorMemoryAllocation) {
      cudaGetLastError();
      return nullptr;
    }
    must(result, "cudaMalloc", index_);
    return memory;
  }
  void release(void* memory) noexcept override {
    cudaSetDevice(index_);
    cudaFree(memory);
  }
  [[nodiscard]] void* allocate_pinned(std::size_t bytes) override {
    use(index_);
    void* memory = nullptr;
    const cudaError_t result = cudaHostAlloc(&memory, bytes, cudaHostAllocPortable);
    if (result == cudaErrorMemoryAllocation) {
      cudaGetLastError();
      return nullptr;
    }
    must(result, "cudaHostAlloc", index_);
    return memory;
  }
  void release_pinned(void* memory) noexcept override {
    cudaSetDevice(index_);
    cudaFreeHost(memory);
  }
  [[nodiscard]] std::unique_ptr<Stream> make_stream() override {
    return std::make_unique<CudaStream>(index_);
  }
  [[nodiscard]] std::unique_ptr<MelProgram> make_mel(const FrontEnd& front_end,
                                                     const KernelOptions& options,
                                                     std::uint32_t most_frames) override {
    use(index_);
    return std::make_unique<CudaMel>(index_, front_end, options, most_frames);
  }

 private:
  int index_;
};

// The devices that the driver reports.
struct Found {
  std::vector<GpuInfo> usable;
  std::map<int, std::string> unusable;
  std::string why_none;
};

Found look() {
  Found out;
  int count = 0;
  const cudaError_t result = cudaGetDeviceCount(&count);
  if (result != cudaSuccess || count == 0) {
    cudaGetLastError();
    int driver = 0;
    cudaDriverGetVersion(&driver);
    const auto version = [](int v) {
      return std::to_string(v / 1000) + "." + std::to_string(v % 1000 / 10);
    };
    if (result == cudaSuccess || result == cudaErrorNoDevice)
      out.why_none = "no CUDA device was found";
    else if (driver == 0)
      out.why_none = "there is no NVIDIA driver on this machine";
    else if (result == cudaErrorInsufficientDriver)
      out.why_none = "the NVIDIA driver is for CUDA " + version(driver) +
                     " at most, and this program needs " + version(CUDART_VERSION);
    else
      out.why_none = std::string("no CUDA device can be used: ") + cudaGetErrorString(result);
    return out;
  }
  constexpr int oldest = 8;  // lowest compute capability with kernels
  for (int i = 0; i < count; ++i) {
    try {
      const GpuInfo info = info_of(i);
      if (std::stoi(info.architecture.substr(3)) / 10 >= oldest)
        out.usable.push_back(info);
      else
        out.unusable[i] = "device " + std::to_string(i) + " (" + info.name + ", " +
                          info.architecture +
                          ") is older than the kernels, which are for sm_80 and later";
    } catch (const CudaError& e) {
      out.unusable[i] = e.what();
    }
  }
  if (!out.unusable.empty()) out.why_none = out.unusable.begin()->second;
  return out;
}

class CudaGpus final : public Gpus {
 public:
  [[nodiscard]] bool may_have_some() const override {
    try {
      // Opens the driver's library but does not start the driver.
      const SharedLibrary driver("libcuda.so.1", "NVIDIA's driver");
      return true;
    } catch (const CudaError&) {
      return false;
    }
  }
  [[nodiscard]] std::vector<GpuInfo> list() const override { return found().usable; }
  [[nodiscard]] std::string why_none() const override { return found().why_none; }
  [[nodiscard]] std::map<int, std::string> unusable() const override { return found().unusable; }
  [[nodiscard]] std::string why_no_cufft() const override {
    try {
      const CufftLibrary library;
      return {};
    } catch (const CudaError& e) {
      return e.what();
    }
  }
  [[nodiscard]] std::unique_ptr<Gpu> open(int index) override {
    return std::make_unique<CudaGpu>(index);
  }

 private:
  // Asks the driver once, at the first call.
  const Found& found() const {
    std::call_once(is_looked_for_, [this] { found_ = look(); });
    return found_;
  }

  mutable std::once_flag is_looked_for_;
  mutable Found found_;
};

}  // namespace

std::unique_ptr<Gpus> look_for_gpus() { return std::make_unique<CudaGpus>(); }

}  // namespace melflow::cuda
