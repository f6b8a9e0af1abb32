// The functions of CUDA's runtime, and kernels whose rows a test can work out.

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <string>
#include <utility>

#include "cuda/error.h"
#include "cuda/mel_kernels.h"
#include "tests/cuda_runtime/recording_kernels.h"
#include "tests/cuda_runtime/recording_runtime.h"

using melflow::test::RecordingRuntime;

namespace {

RecordingRuntime& runtime() { return RecordingRuntime::now(); }

// Of a call that is not given to a stream.
template <class F>
cudaError_t done(const char* name, F&& work) {
  if (const cudaError_t error = runtime().call(name); error != cudaSuccess) return error;
  return work();
}

template <class T>
cudaError_t destroy(std::set<T*>& all, T* object, const char* what) {
  if (all.erase(object) == 0) runtime().complain(std::string(what) + " that is not there");
  delete object;
  return cudaSuccess;
}

bool is_capturing(int device) {
  return std::ranges::any_of(runtime().streams, [device](const FakeStream* s) {
    return s->device == device && s->capture;
  });
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
const char* cudaGetErrorString(cudaError_t) { return "a sentence about it"; }

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
cudaError_t cudaDeviceGetPCIBusId(char* out, int size, int device) {
  return done("bus id", [&] {
    std::strncpy(out, ("bus:" + std::to_string(device)).c_str(), static_cast<std::size_t>(size));
    return cudaSuccess;
  });
}
cudaError_t cudaSetDevice(int device) {
  runtime().device = device;
  const cudaError_t opens = runtime().devices.at(static_cast<std::size_t>(device)).opens;
  return opens == cudaSuccess ? opens : runtime().remember(opens);
}
cudaError_t cudaDeviceSynchronize() {
  return done("synchronise device", [] {
    if (runtime().hangs) runtime().complain("the device is waited for, and hangs");
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
  if (runtime().hangs) runtime().complain("memory is freed on a device that hangs");
  runtime().release(memory, true);
  return cudaSuccess;
}
cudaError_t cudaFreeHost(void* memory) {
  if (runtime().hangs) runtime().complain("page-locked memory is freed while a device hangs");
  runtime().release(memory, false);
  return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream) {
  const bool in = kind == cudaMemcpyHostToDevice;
  return runtime().give(stream, (in ? "copy in " : "copy out ") + std::to_string(bytes), [=] {
    runtime().check_range(to, bytes, in, "copied to");
    runtime().check_range(from, bytes, !in, "copied from");
    std::memcpy(to, from, bytes);
  });
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* out, unsigned flags) {
  if (flags != cudaStreamNonBlocking) runtime().complain("a stream that waits for others");
  return done("stream", [&] {
    *out = *runtime().streams.insert(new FakeStream{runtime().device, {}, nullptr}).first;
    return cudaSuccess;
  });
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  return destroy(runtime().streams, stream, "a stream");
}
cudaError_t cudaStreamQuery(cudaStream_t stream) {
  return done("query", [&] {
    if (runtime().works_when_asked) runtime().run(*stream);
    return stream->pending.empty() ? cudaSuccess : cudaErrorNotReady;
  });
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  return done("synchronise stream", [&] {
    if (stream == nullptr) return cudaSuccess;  // what tables are copied on
    if (stream->capture) return runtime().remember(cudaErrorStreamCaptureUnsupported);
    if (runtime().hangs && !stream->pending.empty())
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
  // What was captured ends with the recording, failed or not.
  auto graph = std::exchange(stream->capture, nullptr);
  return done("end recording", [&] {
    *out = *runtime().graphs.insert(graph.release()).first;
    return cudaSuccess;
  });
}
cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* argument) {
  return runtime().give(stream, "call", [=] { function(argument); });
}

cudaError_t cudaEventCreate(cudaEvent_t* out) {
  return done("event", [&] {
    *out = *runtime().events.insert(new FakeEvent{runtime().device}).first;
    return cudaSuccess;
  });
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  return destroy(runtime().events, event, "an event");
}
// In a recording it would be a dependency, and have no time.
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  if (stream->capture) runtime().complain("an event without time in a recording");
  return runtime().give(stream, "mark", [event] { event->at = runtime().time; });
}
cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned flags) {
  if (flags != cudaEventRecordExternal) runtime().complain("an event without time in a recording");
  return runtime().give(stream, "mark", [event] { event->at = runtime().time; });
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
    *out = *runtime().executables.insert(new FakeExecutable{runtime().device, graph->steps}).first;
    return cudaSuccess;
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
  // A graph may be destroyed while it is under way.
  return runtime().give(stream, "launch graph", [steps = executable->steps] {
    for (const FakeStep& step : steps) {
      ++runtime().time;
      step.work();
    }
  });
}

}  // extern "C"

// ---- kernels ----------------------------------------------------------------------------------

namespace melflow::cuda {

class MelKernels::Impl {
 public:
  Impl(const FrontEnd& front_end, std::uint32_t most_frames)
      : columns(static_cast<std::size_t>(front_end.settings.columns)), most(most_frames) {
    if (is_capturing(runtime().device)) runtime().complain("tables are made while recording");
    if (runtime().call("tables") != cudaSuccess)
      throw CudaError("cudaMemcpy: cudaErrorLaunchFailure");
    ++runtime().kernels;
  }
  ~Impl() { --runtime().kernels; }
  std::size_t columns;
  std::uint32_t most;
};

MelKernels::MelKernels(const FrontEnd& front_end, const KernelOptions&, std::uint32_t most_frames)
    : impl_(std::make_unique<Impl>(front_end, most_frames)) {}
MelKernels::~MelKernels() = default;
Path MelKernels::path() const { return Path::fused; }
std::string MelKernels::description() const { return "recorded"; }
std::size_t MelKernels::work_bytes() const { return 512; }

void MelKernels::launch(void* stream, const Launch& launch) {
  if (launch.capacity > impl_->most) runtime().complain("a launch of more frames than announced");
  const cudaError_t error =
      runtime().give(static_cast<cudaStream_t>(stream), "kernel",
                     [launch, n = impl_->columns] { test::recorded_rows(launch, n); });
  if (error != cudaSuccess)
    throw CudaError(std::string("cudaLaunchKernel: ") + cudaGetErrorName(error));
}

}  // namespace melflow::cuda

namespace melflow::test {

void recorded_rows(const cuda::MelKernels::Launch& launch, std::size_t columns) {
  runtime().check_range(launch.n_frames, sizeof(std::uint32_t), true, "count of frames");
  runtime().check_range(launch.offsets, *launch.n_frames * sizeof(std::uint32_t), true, "places");
  runtime().check_range(launch.rows, *launch.n_frames * columns * sizeof(float), true, "rows");
  const auto* samples = static_cast<const std::int16_t*>(launch.samples);
  auto* rows = static_cast<float*>(launch.rows);
  for (std::uint32_t t = 0; t < *launch.n_frames; ++t) {
    runtime().check_range(samples + launch.offsets[t], sizeof(std::int16_t), true, "samples");
    for (std::size_t c = 0; c < columns; ++c)
      rows[t * columns + c] = recorded_value(samples[launch.offsets[t]], c);
  }
}

float recorded_value(std::int16_t first_sample, std::size_t column) {
  return static_cast<float>(first_sample) + 0.25F * static_cast<float>(column);
}

}  // namespace melflow::test
