// A CUDA runtime that writes down what it is asked for, in order, and does it on the host when a
// test says so. Any call can be made to fail.
//
//   RecordingRuntime runtime;
//   const auto gpus = cuda::look_for_gpus();
//   ... submit a batch ...
//   CHECK(runtime.take_calls() == "copy in 1024, ...");
//   runtime.run();                      // all that streams hold
//   CHECK(runtime.complaints() == "");  // order of things, and what was not given back
//
// Time is counted in steps of streams, a millisecond each. For one thread at a time.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/cuda_runtime/cuda_runtime.h"

struct FakeEvent {
  int device = 0;
  double at = -1;  ///< [ms], -1: not reached, or of a recording
};

struct FakeStep {
  std::string name;
  std::function<void()> work;
};

struct FakeGraph {
  std::vector<FakeStep> steps;
};

struct FakeExecutable {
  int device = 0;
  std::vector<FakeStep> steps;
};

struct FakeStream {
  int device = 0;
  std::vector<FakeStep> pending;
  std::unique_ptr<FakeGraph> capture;
};

namespace melflow::test {

struct FakeDevice {
  std::string name = "recorded";
  int major = 9, minor = 0;
  std::size_t memory = std::size_t{1} << 30;  ///< [bytes]
  cudaError_t opens = cudaSuccess;            ///< what making a context on it gives
};

class RecordingRuntime {
 public:
  explicit RecordingRuntime(std::vector<FakeDevice> devices = {{}});
  RecordingRuntime(const RecordingRuntime&) = delete;
  RecordingRuntime& operator=(const RecordingRuntime&) = delete;
  ~RecordingRuntime();
  /// The one that is there; calls of CUDA's go to it.
  static RecordingRuntime& now();

  /// What streams hold is done, in the order in which it was given to each.
  void run();
  /// A device goes on whenever it is asked how it is; else with run() only.
  bool works_when_asked = true;
  /// Nothing is done from now on: a device that never answers.
  bool hangs = false;
  /// The call with this number, counted from 0 over all that can fail, does; `lasting`: and all
  /// behind it.
  void fail_at(long call, cudaError_t error, bool lasting = false);
  [[nodiscard]] long calls() const { return calls_; }
  /// Name of the call that was made to fail; "" where it never came.
  [[nodiscard]] const std::string& failed() const { return failed_; }

  /// Names of what was done or given to streams since the last time, divided by ", ".
  [[nodiscard]] std::string take_calls();
  /// Defects: work on the wrong device, memory that was not there (any more), waiting for a device
  /// that hangs; and what is still held of streams, events, graphs and memory.
  [[nodiscard]] std::string complaints() const;
  void complain(const std::string& text) { complaints_ += text + "\n"; }

  std::vector<FakeDevice> devices;
  std::size_t pinned_limit = std::size_t{1} << 30;  ///< [bytes]
  cudaError_t count_result = cudaSuccess;           ///< of cudaGetDeviceCount
  int driver = 12080;
  int times_started = 0;  ///< by whoever asks for devices

  // ---- for the runtime's functions

  /// Counts and notes a call; what it has to return.
  cudaError_t call(const std::string& name);
  /// For a stream, at once or into its recording. Checks the device.
  cudaError_t give(cudaStream_t stream, const std::string& name, std::function<void()> work);
  cudaError_t take_last() { return std::exchange(last_, cudaSuccess); }
  cudaError_t remember(cudaError_t error) { return last_ = error; }
  /// Where `memory` lies, or a complaint.
  void check_range(const void* memory, std::size_t bytes, bool on_device, const char* what);
  void* take(std::size_t bytes, bool on_device);
  void release(void* memory, bool on_device);
  void run(FakeStream& stream);

  int device = 0;  ///< the current one
  double time = 0;
  std::set<FakeStream*> streams;
  std::set<FakeEvent*> events;
  std::set<FakeGraph*> graphs;
  std::set<FakeExecutable*> executables;
  int kernels = 0;  ///< tables on devices

 private:
  struct Memory {
    std::size_t bytes = 0;
    int device = -1;  ///< -1: page-locked
  };
  std::map<const std::byte*, Memory> memory_;
  std::string journal_, complaints_, failed_;
  long calls_ = 0, fail_at_ = -1;
  cudaError_t error_ = cudaSuccess, last_ = cudaSuccess;
  bool lasting_ = false, has_failed_ = false;
};

}  // namespace melflow::test
