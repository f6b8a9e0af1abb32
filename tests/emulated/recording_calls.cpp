// The functions of CUDA's runtime, as recorded by RecordingRuntime.

#include <xxhash.h>

#include <cstring>
#include <string>
#include <utility>

#include "tests/emulated/recording_runtime.h"

using melflow::test::KernelLaunch;
using melflow::test::LaneOrder;
using melflow::test::RecordingRuntime;

namespace {

RecordingRuntime& runtime() { return RecordingRuntime::now(); }

// Makes a call that is not given to a stream.
template <class F>
cudaError_t done(const char* name, F&& work) {
  if (const cudaError_t error = runtime().call(name); error != cudaSuccess) return error;
  return work();
}

template <class T>
cudaError_t make(std::set<T*>& all, T** out, T* object) {
  const std::lock_guard lock(runtime().mutex);
  *out = *all.insert(object).first;
  return cudaSuccess;
}

template <class T>
cudaError_t destroy(std::set<T*>& all, T* object, const char* what) {
  const std::lock_guard lock(runtime().mutex);
  if (all.erase(object) == 0) runtime().complain(std::string(what) + " that is not there");
  delete object;
  return cudaSuccess;
}

// A step that does nothing until it is executed.
template <class F>
std::function<FakeWork()> later(F work) {
  return [work] { return FakeWork(work); };
}

// Copies a kernel's argument. Its length is unknown, so whatever follows on the caller's stack is
// copied, too.
__attribute__((no_sanitize("address"), no_sanitize("thread"))) KernelLaunch::Argument copy_of(
    const void* argument) {
  KernelLaunch::Argument out;
  const auto* from = static_cast<const volatile std::byte*>(argument);
  for (std::size_t i = 0; i < out.size(); ++i) *(out.data() + i) = from[i];
  return out;
}

}  // namespace

extern "C" {

cudaError_t cudaGetLastError() { return runtime().take_last(); }
const char* cudaGetErrorName(cudaError_t error) {
  return error == cudaErrorMemoryAllocation     ? "cudaErrorMemoryAllocation"
         : error == cudaErrorLaunchFailure      ? "cudaErrorLaunchFailure"
         : error == cudaErrorDevicesUnavailable ? "cudaErrorDevicesUnavailable"
                                                : "cudaErrorOfATest";
}
const char* cudaGetErrorString(cudaError_t error) {
  return error == cudaSuccess ? "no error" : "a sentence about it";
}

cudaError_t cudaDriverGetVersion(int* version) {
  *version = runtime().driver;
  return cudaSuccess;
}
cudaError_t cudaGetDeviceCount(int* count) {
  ++runtime().times_started;
  *count = static_cast<int>(runtime().devices.size());
  return runtime().remember(runtime().count_result);
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* out, int device) {
  return done("properties", [&] {
    const auto& d = runtime().devices.at(static_cast<std::size_t>(device));
    std::strncpy(out->name, d.name.c_str(), sizeof out->name - 1);
    out->major = d.major;
    out->minor = d.minor;
    out->totalGlobalMem = d.memory;
    return cudaSuccess;
  });
}
// Returns a small number, so that warps take several frames one after another.
cudaError_t cudaDeviceGetAttribute(int* out, cudaDeviceAttr, int) {
  return done("attribute", [&] {
    *out = 3;
    return cudaSuccess;
  });
}
cudaError_t cudaDeviceGetPCIBusId(char* out, int size, int device) {
  return done("bus id", [&] {
    std::strncpy(out, ("bus:" + std::to_string(device)).c_str(), static_cast<std::size_t>(size));
    return cudaSuccess;
  });
}
cudaError_t cudaGetDevice(int* device) {
  *device = runtime().device;
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int device) {
  runtime().device = device;
  const cudaError_t opens = runtime().devices.at(static_cast<std::size_t>(device)).opens;
  return opens == cudaSuccess ? opens : runtime().remember(opens);
}
cudaError_t cudaDeviceSynchronize() {
  return done("synchronise device", [] {
    if (runtime().hangs) runtime().complain("the device is waited for, and hangs");
    runtime().run();
    return cudaSuccess;
  });
}

cudaError_t cudaMalloc(void** out, std::size_t bytes) {
  return done("malloc", [&] {
    *out = runtime().take(bytes, true);
    return *out != nullptr ? cudaSuccess : runtime().remember(cudaErrorMemoryAllocation);
  });
}
cudaError_t cudaHostAlloc(void** out, std::size_t bytes, unsigned) {
  return done("host alloc", [&] {
    *out = runtime().take(bytes, false);
    return *out != nullptr ? cudaSuccess : runtime().remember(cudaErrorMemoryAllocation);
  });
}
cudaError_t cudaFree(void* memory) {
  if (runtime().hangs || runtime().hung == runtime().device)
    runtime().complain("memory is freed on a device that hangs");
  runtime().run(runtime().null_stream());
  runtime().release(memory, true);
  return cudaSuccess;
}
cudaError_t cudaFreeHost(void* memory) {
  if (runtime().hangs) runtime().complain("page-locked memory is freed while a device hangs");
  runtime().release(memory, false);
  return cudaSuccess;
}

// Runs on stream 0. Data from host memory has been read when these functions return, but has not
// arrived.
cudaError_t cudaMemset(void* to, int value, std::size_t bytes) {
  return runtime().give(nullptr, "set " + std::to_string(bytes), later([=] {
                          runtime().check_range(to, bytes, true, "set");
                          std::memset(to, value, bytes);
                        }));
}
cudaError_t cudaMemcpy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind) {
  if (kind == cudaMemcpyHostToDevice) {
    const std::string held(static_cast<const char*>(from), bytes);
    return runtime().give(nullptr, "table " + std::to_string(bytes), later([=] {
                            runtime().check_range(to, bytes, true, "copied to");
                            std::memcpy(to, held.data(), bytes);
                          }));
  }
  const cudaError_t error =
      runtime().give(nullptr, "read " + std::to_string(bytes), later([=] {
                       runtime().check_range(from, bytes, true, "copied from");
                       std::memcpy(to, from, bytes);
                     }));
  runtime().run(runtime().null_stream());
  return error;
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream) {
  const bool in = kind == cudaMemcpyHostToDevice;
  if (in) {
    const long before = runtime().counts.copies_in++;
    int none = -1;
    if (runtime().break_at >= 0 && before >= runtime().break_at)
      runtime().broken.compare_exchange_strong(none, runtime().device);
    if (runtime().hang_at >= 0 && before >= runtime().hang_at)
      runtime().hung.compare_exchange_strong(none, runtime().device);
  }
  const auto ranges = [=] {
    runtime().check_range(to, bytes, in, "copied to");
    runtime().check_range(from, bytes, !in, "copied from");
  };
  if (in)
    return runtime().give(stream, "copy in " + std::to_string(bytes), [=]() -> FakeWork {
      const std::uint64_t as_given = XXH3_64bits(from, bytes);
      return [=] {
        ranges();
        if (XXH3_64bits(from, bytes) != as_given)
          runtime().complain("pinned memory changed before it was copied");
        std::memcpy(to, from, bytes);
      };
    });
  return runtime().give(stream, "copy out " + std::to_string(bytes), [=]() -> FakeWork {
    std::memset(to, 0xFF, bytes);  // NaN is visible where the data is read too early
    return [=] {
      ranges();
      std::memcpy(to, from, bytes);
      runtime().counts.bytes_out += bytes;
    };
  });
}

cudaError_t cudaFuncSetAttribute(const void* kernel, cudaFuncAttribute, int bytes) {
  return done("shared memory", [&] {
    const std::lock_guard lock(runtime().mutex);
    if (static_cast<std::size_t>(bytes) > melflow::test::most_shared_bytes)
      return runtime().remember(cudaErrorInvalidValue);
    runtime().shared_limits[kernel] = static_cast<std::size_t>(bytes);
    return cudaSuccess;
  });
}
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* out, const void*, int, std::size_t) {
  return done("occupancy", [&] {
    *out = 2;
    return cudaSuccess;
  });
}
cudaError_t cudaLaunchKernel(const void* kernel, dim3 grid, dim3 block, void** arguments,
                             std::size_t shared_bytes, cudaStream_t stream) {
  {
    const std::lock_guard lock(runtime().mutex);
    const auto limit = runtime().shared_limits.find(kernel);
    constexpr std::size_t unasked = std::size_t{48} << 10;  // available to a kernel without asking
    if (grid.x == 0 ||
        shared_bytes > (limit == runtime().shared_limits.end() ? unasked : limit->second))
      return runtime().remember(cudaErrorInvalidValue);
  }
  ++runtime().counts.kernels;
  const KernelLaunch launch{kernel, grid.x, block.x, shared_bytes, copy_of(arguments[0])};
  return runtime().give(stream, "kernel", later([launch] {
                          static std::atomic<std::uint64_t> launches{RecordingRuntime::seed()};
                          const std::uint64_t drawn = ++launches * 0x9E3779B97F4A7C15U;
                          const std::string error =
                              run_kernel(launch, static_cast<LaneOrder>((drawn >> 32) % 3), drawn);
                          if (!error.empty()) runtime().complain("kernel: " + error);
                        }));
}

cudaError_t cudaStreamCreate(cudaStream_t* out) {
  return done("stream", [&] {
    return make(runtime().streams, out,
                new FakeStream{runtime().device, FakeStream::Kind::waits_for_null, {}, false, {}});
  });
}
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* out, unsigned flags) {
  if (flags != cudaStreamNonBlocking) runtime().complain("a stream that waits for others");
  return done("stream", [&] {
    return make(runtime().streams, out,
                new FakeStream{runtime().device, FakeStream::Kind::alone, {}, false, {}});
  });
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  runtime().wait_for_step(*stream);
  if (!runtime().may_drop(*stream)) runtime().complain("a stream that has work to do is destroyed");
  return destroy(runtime().streams, stream, "a stream");
}
cudaError_t cudaStreamQuery(cudaStream_t stream) {
  return done("query", [&] {
    if (runtime().works_when_asked) runtime().run(*stream);
    const std::lock_guard lock(runtime().mutex);
    return stream->pending.empty() && !stream->is_busy ? cudaSuccess : cudaErrorNotReady;
  });
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  return done("synchronise stream", [&] {
    if (stream == nullptr) stream = &runtime().null_stream();
    if (stream->capture) return runtime().remember(cudaErrorStreamCaptureUnsupported);
    if ((runtime().hangs || runtime().hung == stream->device) && !stream->pending.empty())
      runtime().complain("a stream is waited for, and hangs");
    runtime().run(*stream);
    return cudaSuccess;
  });
}
cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode) {
  return done("begin recording", [&] {
    stream->capture = std::make_unique<FakeGraph>();
    return cudaSuccess;
  });
}
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* out) {
  *out = nullptr;
  // The capture ends with the recording, failed or not.
  auto graph = std::exchange(stream->capture, nullptr);
  return done("end recording", [&] { return make(runtime().graphs, out, graph.release()); });
}
cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* argument) {
  return runtime().give(stream, "call", later([=] { function(argument); }));
}

cudaError_t cudaEventCreate(cudaEvent_t* out) {
  return done("event",
              [&] { return make(runtime().events, out, new FakeEvent{runtime().device}); });
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  return destroy(runtime().events, event, "an event");
}
// In a recording, an event would be a dependency and have no time.
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  if (stream->capture) runtime().complain("an event without time in a recording");
  return runtime().give(stream, "mark", later([event] { event->at = runtime().now_ms(); }));
}
cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned flags) {
  if (flags != cudaEventRecordExternal) runtime().complain("an event without time in a recording");
  return runtime().give(stream, "mark", later([event] { event->at = runtime().now_ms(); }));
}
cudaError_t cudaEventElapsedTime(float* out, cudaEvent_t from, cudaEvent_t to) {
  return done("elapsed", [&] {
    if (from->at < 0 || to->at < 0) return runtime().remember(cudaErrorInvalidResourceHandle);
    *out = static_cast<float>(to->at - from->at);
    return cudaSuccess;
  });
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* out, cudaGraph_t graph, unsigned long long) {
  return done("instantiate", [&] {
    return make(runtime().executables, out, new FakeExecutable{runtime().device, graph->steps});
  });
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  return destroy(runtime().graphs, graph, "a graph");
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) {
  return destroy(runtime().executables, executable, "an executable graph");
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream) {
  if (executable->device != stream->device) runtime().complain("a graph on another device");
  return runtime().give_all(stream, executable->steps);
}

}  // extern "C"
