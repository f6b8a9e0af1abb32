// gpu.h - devices, streams and memory as the stages use them; plain C++.
//
// One implementation drives CUDA (cuda_gpu.cpp); another, for tests, runs on the host and checks
// the order of calls. Every call that fails throws CudaError (error.h) with the call's name and the
// device's. Only Stream::wait() synchronises a device.

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
  std::string pci_bus_id;    // "0000:65:00.0": other libraries may number devices differently
};

// The data of one launch; all but `capacity` in device memory.
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
  // Device memory that a launch needs besides its batch and rows; launches that may overlap need
  // one such area each.
  [[nodiscard]] virtual std::size_t scratch_bytes() const = 0;
};

// Work recorded once, to be launched as a whole.
class Recording {
 public:
  virtual ~Recording() = default;
};

// A queue of work, done in order. For one thread at a time.
class Stream {
 public:
  virtual ~Stream() = default;
  virtual void copy_in(void* device, const void* host, std::size_t bytes) = 0;
  virtual void copy_out(void* host, const void* device, std::size_t bytes) = 0;
  virtual void mel(MelProgram& program, const MelWork& work) = 0;
  // Calls function(argument) on a thread of the device's driver, once all earlier work is done. The
  // function must not use this interface.
  virtual void call(void (*function)(void*), void* argument) = 0;
  // Records the work that `work` enqueues on this stream instead of doing it.
  [[nodiscard]] virtual std::unique_ptr<Recording> record(const std::function<void()>& work) = 0;
  virtual void launch(Recording& recording) = 0;
  // Notes the device's time when all earlier work is done, in one of `places` slots; in a
  // recording, again at every launch.
  static constexpr int places = 4;
  virtual void mark(int place) = 0;
  // Seconds between two marks, both of which must have been reached.
  [[nodiscard]] virtual double between(int from, int to) = 0;
  // Throws CudaError if the device or earlier work of this stream has failed; does not wait.
  virtual void check() = 0;
  // Waits until all work of this stream is done.
  virtual void wait() = 0;
};

class Gpu {
 public:
  virtual ~Gpu() = default;
  [[nodiscard]] virtual GpuInfo info() const = 0;
  // Returns device memory, aligned to 256 bytes; null if none is left.
  [[nodiscard]] virtual void* allocate(std::size_t bytes) = 0;
  virtual void release(void* memory) noexcept = 0;
  // Returns page-locked memory of the host; null if none is left.
  [[nodiscard]] virtual void* allocate_pinned(std::size_t bytes) = 0;
  virtual void release_pinned(void* memory) noexcept = 0;
  [[nodiscard]] virtual std::unique_ptr<Stream> make_stream() = 0;
  // `most_frames`: the largest capacity of a launch. Throws std::invalid_argument if the options
  // are not available.
  [[nodiscard]] virtual std::unique_ptr<MelProgram> make_mel(const FrontEnd& front_end,
                                                             const KernelOptions& options,
                                                             std::uint32_t most_frames) = 0;
};

class Gpus {
 public:
  virtual ~Gpus() = default;
  // False if the machine has no device. Returns at once, and does not start a driver.
  [[nodiscard]] virtual bool may_have_some() const = 0;
  // The devices that this build has kernels for; does not access them. If it is empty, why_none()
  // gives the reason in half a sentence. Starts the driver. Does not throw.
  [[nodiscard]] virtual std::vector<GpuInfo> list() const = 0;
  [[nodiscard]] virtual std::string why_none() const = 0;
  // Why other devices cannot be used, by their index.
  [[nodiscard]] virtual std::map<int, std::string> unusable() const = 0;
  // Why sizes without a fused kernel are not available; "" if they are.
  [[nodiscard]] virtual std::string why_no_cufft() const = 0;
  [[nodiscard]] virtual std::unique_ptr<Gpu> open(int index) = 0;
  // The clock for time limits. [s]
  [[nodiscard]] virtual double now() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
  }
  // How long the end of a run waits for DeviceMonitor's results.
  [[nodiscard]] virtual std::chrono::milliseconds patience() const {
    return std::chrono::seconds(2);
  }
};

// The devices of this machine; none in a program built without CUDA.
Gpus& gpus();

// For tests: replaces `gpus()` as long as the object lives.
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
