// A CUDA runtime on the host: it writes down what it is asked for, in order, and does it as late as
// CUDA allows. Any call can be made to fail. Kernels are run lane by lane (lanes.h).
//
//   RecordingRuntime runtime;
//   const auto gpus = cuda::look_for_gpus();
//   ... submit a batch ...
//   CHECK(runtime.take_calls() == "copy in 1024, ...");
//   runtime.run();                      // all that streams hold
//   CHECK(runtime.complaints() == "");  // order of things, and what was not given back
//
// What streams hold is done when somebody waits for it, or by a thread that drive() starts: one
// step of a stream after another, of which stream is drawn. Streams that do not wait for each other
// are mixed that way. Memory is full of NaN when it is taken, and so is what will be copied to the
// host until it is; what is copied from the host may not change before. Time is counted in steps, a
// millisecond each, or with drive() by the clock.
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
  double at = -1;  ///< [ms], -1: not reached, or of a recording
};

using FakeWork = std::function<void()>;
/// Called when the step is given to a stream; what it returns, when it is done.
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
    std::uint64_t number;  ///< of all that streams were given
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
  cudaError_t opens = cudaSuccess;            ///< what making a context on it gives
};

class RecordingRuntime {
 public:
  explicit RecordingRuntime(std::vector<FakeDevice> devices = {{}});
  RecordingRuntime(const RecordingRuntime&) = delete;
  RecordingRuntime& operator=(const RecordingRuntime&) = delete;
  ~RecordingRuntime();
  /// The one that is there; calls of CUDA's go to it. Without any, one for the whole program, which
  /// ends with exit status 1 when it has a complaint.
  static RecordingRuntime& now();
  /// What is drawn follows from it: $MELFLOW_SEED, or 1.
  static std::uint64_t seed();

  /// What streams hold is done.
  void run();
  /// From now on a thread does it, sooner or later.
  void drive();
  /// A device goes on whenever it is asked how it is; else with run() only.
  bool works_when_asked = true;
  /// Nothing is done from now on: a device that never answers.
  bool hangs = false;
  /// That many copies to devices are given; then the device of the next one is broken, or hangs.
  long break_at = -1, hang_at = -1;
  std::atomic<int> broken{-1}, hung{-1};
  /// The call with this number, counted from 0 over all that can fail, does; `lasting`: and all
  /// behind it.
  void fail_at(long call, cudaError_t error, bool lasting = false);
  [[nodiscard]] long calls() const { return calls_; }
  /// Name of the call that was made to fail; "" where it never came.
  [[nodiscard]] const std::string& failed() const { return failed_; }

  /// Names of what was done or given to streams since the last time, divided by ", ".
  [[nodiscard]] std::string take_calls();
  /// Defects: work on the wrong device, memory that was not there (any more) or was written beside,
  /// waiting for a device that hangs; and what is still held of streams, events, graphs and memory.
  [[nodiscard]] std::string complaints();
  void complain(const std::string& text);

  struct Counts {
    std::atomic<long> copies_in{0}, kernels{0}, replays{0};
    std::atomic<std::size_t> bytes_out{0};                      ///< copied from devices
    std::atomic<std::size_t> device_taken{0}, pinned_taken{0};  ///< in all, given back or not
  };
  Counts counts;

  std::vector<FakeDevice> devices;
  std::size_t pinned_limit = std::size_t{1} << 30;  ///< [bytes]
  cudaError_t count_result = cudaSuccess;           ///< of cudaGetDeviceCount
  int driver = 12080;
  int times_started = 0;  ///< how often devices were asked for

  // ---- for the runtime's functions

  /// Counts and notes a call; what it has to return.
  cudaError_t call(const std::string& name);
  /// For a stream, at once or into its recording. Checks the device.
  cudaError_t give(cudaStream_t stream, const std::string& name, std::function<FakeWork()> begin);
  /// The steps of a graph, as one call. They are done one by one.
  cudaError_t give_all(cudaStream_t stream, const std::vector<FakeStep>& steps);
  static cudaError_t take_last() { return std::exchange(last_, cudaSuccess); }
  static cudaError_t remember(cudaError_t error) { return last_ = error; }
  /// Where `memory` lies, or a complaint.
  void check_range(const void* memory, std::size_t bytes, bool on_device, const char* what);
  void* take(std::size_t bytes, bool on_device);
  void release(void* memory, bool on_device);
  /// All that this stream holds, and what has to be done before.
  void run(FakeStream& stream);
  /// Until no step of this stream is being done.
  void wait_for_step(FakeStream& stream);
  /// Whether nothing more is done of what it holds, or it holds nothing.
  bool may_drop(const FakeStream& stream);
  /// The stream 0 of the current device.
  FakeStream& null_stream();
  [[nodiscard]] double now_ms();

  static thread_local int device;  ///< the current one
  std::recursive_mutex mutex;      ///< of what follows; not held while a step is done
  std::set<FakeStream*> streams;
  std::set<FakeEvent*> events;
  std::set<FakeGraph*> graphs;
  std::set<FakeExecutable*> executables;
  std::map<const void*, std::size_t> shared_limits;  ///< of kernels [bytes]
  std::atomic<int> plans{0};                         ///< of cuFFT's

 private:
  struct Memory {
    std::size_t bytes = 0;
    int device = -1;  ///< -1: page-locked
    void* taken = nullptr;
  };
  using Lock = std::unique_lock<std::recursive_mutex>;

  void check_fences(const std::byte* memory, const Memory& known);
  [[nodiscard]] bool does_nothing(const FakeStream& stream) const;
  /// The stream whose first step has to be done before this one's.
  FakeStream& first_before(FakeStream& stream);
  /// Does one step, or waits for the thread that does; false: there is none to do.
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
