// An emulation of cuFFT for $MELFLOW_CUFFT: each transform is a step of its stream. It is opened at
// run time like the real library, and uses functions of the program.

#include <cstddef>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>

#include "tests/emulated/recording_runtime.h"
#include "tests/emulated/transform.h"

using melflow::test::RecordingRuntime;

namespace {

struct Plan {
  std::shared_ptr<const melflow::test::Transform> transform;
  std::size_t batch = 0;
  std::byte* work = nullptr;
  cudaStream_t stream = nullptr;
};
// Made at the first use, under the runtime's lock. A global object would be made by the thread that
// opens the library, and ThreadSanitizer does not see that the loader's lock orders this before the
// use by other threads.
std::map<int, Plan>& plans() {
  static std::map<int, Plan> all;
  return all;
}
int made = 0;
constexpr std::size_t work_bytes = 512;
constexpr int invalid_plan = 1, invalid_value = 4, internal_error = 5, execution_failed = 6,
              no_workspace = 13;

// Runs `work` with the plans of all threads locked. Can fail like a call of the runtime.
template <class F>
int with_plan(int plan, const char* name, F&& work) {
  const std::lock_guard lock(RecordingRuntime::now().mutex);
  if (name != nullptr && RecordingRuntime::now().call(name) != cudaSuccess) return internal_error;
  const auto it = plans().find(plan);
  return it == plans().end() ? invalid_plan : work(it->second);
}

}  // namespace

extern "C" {

int cufftCreate(int* plan) {
  const std::lock_guard lock(RecordingRuntime::now().mutex);
  if (RecordingRuntime::now().call("cufftCreate") != cudaSuccess) return internal_error;
  plans()[*plan = ++made];
  ++RecordingRuntime::now().plans;
  return 0;
}
int cufftDestroy(int plan) {
  return with_plan(plan, nullptr, [plan](Plan&) {
    plans().erase(plan);
    --RecordingRuntime::now().plans;
    return 0;
  });
}
int cufftSetAutoAllocation(int plan, int is_on) {
  return with_plan(plan, "cufftSetAutoAllocation",
                   [is_on](Plan&) { return is_on == 0 ? 0 : invalid_value; });
}
int cufftMakePlanMany(int plan, int rank, int* n, int*, int in_stride, int in_distance, int*,
                      int out_stride, int out_distance, int type, int batch, std::size_t* bytes) {
  constexpr int real_to_complex = 0x2a;
  if (rank != 1 || in_stride != 1 || out_stride != 1 || in_distance != *n ||
      out_distance != *n / 2 + 1 || type != real_to_complex || batch < 1)
    return invalid_value;
  const auto transform = std::make_shared<const melflow::test::Transform>(*n);
  *bytes = work_bytes;
  return with_plan(plan, "cufftMakePlanMany", [&](Plan& p) {
    p.transform = transform;
    p.batch = static_cast<std::size_t>(batch);
    return 0;
  });
}
int cufftSetWorkArea(int plan, void* work) {
  return with_plan(plan, "cufftSetWorkArea", [work](Plan& p) {
    p.work = static_cast<std::byte*>(work);
    return 0;
  });
}
int cufftSetStream(int plan, void* stream) {
  return with_plan(plan, "cufftSetStream", [stream](Plan& p) {
    p.stream = static_cast<cudaStream_t>(stream);
    return 0;
  });
}
int cufftExecR2C(int plan, float* in, void* out) {
  return with_plan(plan, nullptr, [=](const Plan& p) -> int {
    if (p.work == nullptr) return no_workspace;
    const cudaError_t error = RecordingRuntime::now().give(p.stream, "transform", [=] {
      return [=] {
        RecordingRuntime::now().check_range(p.work, work_bytes, true, "work area");
        p.transform->run(in, static_cast<float*>(out), p.batch);
        std::memset(p.work, 0xFF, work_bytes);  // the work area must hold nothing else
      };
    });
    return error == cudaSuccess ? 0 : execution_failed;
  });
}
int cufftGetVersion(int* version) {
  *version = 11000;
  return 0;
}

}  // extern "C"
