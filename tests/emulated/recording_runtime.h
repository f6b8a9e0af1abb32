// A CUDA runtime on the host: it records all calls in order, and executes them as late as CUDA
// allows. Any call can be made to fail. Kernels are run lane by lane (lanes.h).
//
//   RecordingRuntime runtime;
//   const auto gpus = cuda::look_for_gpus();
//   ... submit a batch ...
//   CHECK(runtime.take_calls() == "copy in 1024, ...");
//   runtime.run();                      // executes all streams
//   CHECK(runtime.complaints() == "");  // wrong order, and what was not freed
//
// Streams are executed when somebody waits for them, or by a thread that drive() starts: one step
// of a stream after another, of randomly drawn streams, so that streams which do not wait for each
// other are interleaved. Memory is filled with NaN when it is allocated, and so is the destination
// of a copy to the host until the copy is done; the source of a copy to a device must not change
// before. Time is counted in steps of a millisecond each, or with drive() by the clock.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/emulated/cuda_runtime.h"

struct FakeEvent {
  int device = 0;
  double at = -1;  ///< [ms]; -1: not reached, or part of a recording
};

using FakeWork = std::function<void()>;
/// Called when the step is given to a stream; returns the work that is done when it is executed.
struct FakeStep {
  std::string name;
  std::function<FakeWork()> begin;
};

struct FakeGraph {
  std::vector<FakeStep> steps;
};

struct FakeExecutable {
  int device = 0;
  std::vector<FakeStep> steps;
};

struct FakeStream {
  struct Pending {
    std::uint64_t number;  ///< number among all steps given to streams
    FakeWork work;
  };
  enum class Kind { null, waits_for_null, alone };
  int device = 0;
  Kind kind = Kind::alone;
  std::deque<Pending> pending;
  bool is_busy = false;
  std::unique_ptr<FakeGraph> capture;
};

namespace melflow::test {

struct FakeDevice {
  std::string name = "emulated";
  int major = 9, minor = 0;
  std::size_t memory = std::size_t{1} << 30;  ///< [bytes]
  cudaError_t opens = cudaSuccess;            ///< result of creating a context on it
};

class RecordingRuntime {
 public:
  explicit RecordingRuntime(std::vector<FakeDevice> devices = {{}});
  RecordingRuntime(const RecordingRuntime&) = delete;
  RecordingRuntime& operator=(const RecordingRuntime&) = delete;
  ~RecordingRuntime();
  /// The current runtime, to which CUDA's calls go. Without any, there is one for the whole
  /// program, which ends with exit status 1 when that has a complaint.
  static RecordingRuntime& now();
  /// Seed of everything that is drawn: $MELFLOW_SEED, or 1.
  static std::uint64_t seed();

  /// Executes everything that streams hold.
  void run();
  /// Starts a thread that executes streams, sooner or later.
  void drive();
  /// Whether a device makes progress whenever its state is queried, or only in run().
  bool works_when_asked = true;
  /// Whether nothing is executed any more: a device that never answers.
  bool hangs = false;
  /// Copies to devices that are accepted before the next one's device is broken, or hangs.
  long break_at = -1, hang_at = -1;
  std::atomic<int> broken{-1}, hung{-1};
  /// Makes the call with this number fail, counted from 0 over all calls that can fail; `lasting`:
  /// and all later calls.
  void fail_at(long call, cudaError_t error, bool lasting = false);
  [[nodiscard]] long calls() const { return calls_; }
  /// The name of the call that was made to fail; "" if it was never reached.
  [[nodiscard]] const std::string& failed() const { return failed_; }

  /// Returns names of calls executed or given to streams since the last time, joined by ", ".
  [[nodiscard]] std::string take_calls();
  /// Returns defects: work on the wrong device, wrong accesses to memory, waiting for a device that
  /// hangs; and streams, events, graphs and memory that were not freed.
  [[nodiscard]] std::string complaints();
  void complain(const std::string& text);

  struct Counts {
    std::atomic<long> copies_in{0}, kernels{0}, replays{0};
    std::atomic<std::size_t> bytes_out{0};                      ///< copied from devices
    std::atomic<std::size_t> device_taken{0}, pinned_taken{0};  ///< in total, freed or not
  };
  Counts counts;

  std::vector<FakeDevice> devices;
  std::size_t pinned_limit = std::size_t{1} << 30;  ///< [bytes]
  cudaError_t count_result = cudaSuccess;           ///< result of cudaGetDeviceCount
  int driver = 12080;
  int times_started = 0;  ///< how often devices were queried

  // ---- for the runtime's functions

  /// Counts and records a call; returns its result.
  cudaError_t call(const std::string& name);
  /// Gives a step to a stream, or to its recording. Checks the device.
  cudaError_t give(cudaStream_t stream, const std::string& name, std::function<FakeWork()> begin);
  /// Gives the steps of a graph as one call. They are executed one by one.
  cudaError_t give_all(cudaStream_t stream, const std::vector<FakeStep>& steps);
  static cudaError_t take_last() { return std::exchange(last_, cudaSuccess); }
  static cudaError_t remember(cudaError_t error) { return last_ = error; }
  /// Checks that `memory` lies within an allocation, or complains.
  void check_range(const void* memory, std::size_t bytes, bool on_device, const char* what);
  void* take(std::size_t bytes, bool on_device);
  void release(void* memory, bool on_device);
  /// Executes all that this stream holds, and all steps that must come before.
  void run(FakeStream& stream);
  /// Waits until no step of this stream is being executed.
  void wait_for_step(FakeStream& stream);
  /// Whether the stream holds nothing, or none of its steps will be executed any more.
  bool may_drop(const FakeStream& stream);
  /// Returns stream 0 of the current device.
  FakeStream& null_stream();
  [[nodiscard]] double now_ms();

  static thread_local int device;  ///< the current one
  std::recursive_mutex mutex;      ///< guards the members below; not held while a step is executed
  std::set<FakeStream*> streams;
  std::set<FakeEvent*> events;
  std::set<FakeGraph*> graphs;
  std::set<FakeExecutable*> executables;
  std::map<const void*, std::size_t> shared_limits;  ///< of kernels [bytes]
  std::atomic<int> plans{0};                         ///< cuFFT plans

 private:
  struct Memory {
    std::size_t bytes = 0;
    int device = -1;  ///< -1: page-locked
    void* taken = nullptr;
  };
  using Lock = std::unique_lock<std::recursive_mutex>;

  void check_fences(const std::byte* memory, const Memory& known);
  [[nodiscard]] bool does_nothing(const FakeStream& stream) const;
  /// Returns the stream whose first step must be executed before this stream's first step.
  FakeStream& first_before(FakeStream& stream);
  /// Executes one step, or waits for the thread that does; returns false if there is none.
  bool step(Lock& lock, FakeStream& stream);
  FakeStream* draw_stream();
  unsigned draw(unsigned below);
  void be_driver();

  std::map<const std::byte*, Memory> memory_;
  std::map<int, std::unique_ptr<FakeStream>> null_streams_;
  std::string journal_, complaints_, failed_;
  long calls_ = 0, fail_at_ = -1;
  cudaError_t error_ = cudaSuccess;
  static thread_local cudaError_t last_;
  bool lasting_ = false, has_failed_ = false;
  double steps_ = 0;
  std::uint64_t given_ = 0, random_ = 1;
  std::condition_variable_any changed_;
  bool is_closed_ = false;
  std::thread driver_;
};

}  // namespace melflow::test
