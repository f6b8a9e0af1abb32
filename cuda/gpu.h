// gpu.h - devices, streams and memory as the stages use them; plain C++.
//
// One implementation drives CUDA (cuda_gpu.cpp), tests have another that runs on the host and
// checks the order of what it is asked to do. Every call that fails throws CudaError (error.h) with
// the call's name and the device's; nothing here synchronises a device but Stream::wait().

#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "cuda/mel_kernels.h"
#include "cuda/number_types.h"

namespace melflow::cuda {

struct GpuInfo {
  int index = 0;
  std::string name;
  std::string architecture;  // "sm_90"
  std::size_t memory = 0;    // [bytes]
  std::string pci_bus_id;    // "0000:65:00.0": other libraries number devices otherwise
};

// What one launch works on; all but `capacity` in device memory.
struct MelWork {
  const void* samples = nullptr;  // aligned to 16 bytes
  SampleType sample_type = SampleType::int16;
  const std::uint32_t* offsets = nullptr;   // [capacity], first sample of each frame
  const std::uint32_t* n_frames = nullptr;  // at most `capacity`
  std::uint32_t capacity = 0;
  void* rows = nullptr;  // [capacity, columns]
  void* scratch = nullptr;
};

// The tables of a front end on one device. For one thread at a time.
class MelProgram {
 public:
  virtual ~MelProgram() = default;
  [[nodiscard]] virtual std::string description() const = 0;
  // Device memory that a launch needs beside its batch and rows; launches that may overlap need one
  // each.
  [[nodiscard]] virtual std::size_t scratch_bytes() const = 0;
};

// Work recorded once, to be launched as a whole.
class Recording {
 public:
  virtual ~Recording() = default;
};

// Work is done in the order it is given. For one thread at a time.
class Stream {
 public:
  virtual ~Stream() = default;
  virtual void copy_in(void* device, const void* host, std::size_t bytes) = 0;
  virtual void copy_out(void* host, const void* device, std::size_t bytes) = 0;
  virtual void mel(MelProgram& program, const MelWork& work) = 0;
  // function(argument) on a thread of the device's driver, once all before it is done. It may not
  // call anything of this interface.
  virtual void call(void (*function)(void*), void* argument) = 0;
  // What `work` gives to this stream is recorded instead of done.
  [[nodiscard]] virtual std::unique_ptr<Recording> record(const std::function<void()>& work) = 0;
  virtual void launch(Recording& recording) = 0;
  // Notes the device's time when all before it is done, at one of `places` places; in a recording
  // again at every launch.
  static constexpr int places = 4;
  virtual void mark(int place) = 0;
  // Seconds between two marks that were both reached.
  [[nodiscard]] virtual double between(int from, int to) = 0;
  // Throws CudaError where the device or earlier work of this stream has failed; does not wait.
  virtual void check() = 0;
  // Waits until all work of this stream is done.
  virtual void wait() = 0;
};

class Gpu {
 public:
  virtual ~Gpu() = default;
  [[nodiscard]] virtual GpuInfo info() const = 0;
  // Device memory, aligned to 256 bytes; null where there is none left.
  [[nodiscard]] virtual void* allocate(std::size_t bytes) = 0;
  virtual void release(void* memory) noexcept = 0;
  // Page-locked memory of the host; null where there is none left.
  [[nodiscard]] virtual void* allocate_pinned(std::size_t bytes) = 0;
  virtual void release_pinned(void* memory) noexcept = 0;
  [[nodiscard]] virtual std::unique_ptr<Stream> make_stream() = 0;
  // `most_frames`: the largest capacity of a launch. Throws std::invalid_argument when the options
  // cannot be had.
  [[nodiscard]] virtual std::unique_ptr<MelProgram> make_mel(const FrontEnd& front_end,
                                                             const KernelOptions& options,
                                                             std::uint32_t most_frames) = 0;
};

class Gpus {
 public:
  virtual ~Gpus() = default;
  // False: the machine has no device. Returns at once, and starts no driver.
  [[nodiscard]] virtual bool may_have_some() const = 0;
  // The devices that this build has kernels for; none of them is touched. Empty where there is
  // none, and why_none() then says why in half a sentence. Starts the driver. Does not throw.
  [[nodiscard]] virtual std::vector<GpuInfo> list() const = 0;
  [[nodiscard]] virtual std::string why_none() const = 0;
  // Why devices that are there cannot be used, by their index.
  [[nodiscard]] virtual std::map<int, std::string> unusable() const = 0;
  // Why sizes without a fused kernel cannot be had; "" when they can.
  [[nodiscard]] virtual std::string why_no_cufft() const = 0;
  [[nodiscard]] virtual std::unique_ptr<Gpu> open(int index) = 0;
  // The clock that limits of waiting are measured by. [s]
  [[nodiscard]] virtual double now() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
  }
  // How long the end of a run waits for what DeviceMonitor saw of the devices.
  [[nodiscard]] virtual std::chrono::milliseconds patience() const {
    return std::chrono::seconds(2);
  }
};

// The devices of this machine; in a program built without CUDA there are none.
Gpus& gpus();

// For tests: `gpus()` is this one as long as the object lives.
class ScopedGpus {
 public:
  explicit ScopedGpus(Gpus& replacement);
  ScopedGpus(const ScopedGpus&) = delete;
  ScopedGpus& operator=(const ScopedGpus&) = delete;
  ~ScopedGpus();

 private:
  Gpus* before_;
};

}  // namespace melflow::cuda
