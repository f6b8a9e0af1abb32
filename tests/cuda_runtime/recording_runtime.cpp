#include "tests/cuda_runtime/recording_runtime.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace melflow::test {
namespace {

RecordingRuntime* g_now = nullptr;

}  // namespace

RecordingRuntime::RecordingRuntime(std::vector<FakeDevice> all) : devices(std::move(all)) {
  g_now = this;
}

RecordingRuntime::~RecordingRuntime() {
  for (const auto& [memory, known] : memory_) std::free(const_cast<std::byte*>(memory));
  for (FakeStream* s : streams) delete s;
  for (FakeEvent* e : events) delete e;
  for (FakeGraph* g : graphs) delete g;
  for (FakeExecutable* e : executables) delete e;
  g_now = nullptr;
}

RecordingRuntime& RecordingRuntime::now() { return *g_now; }

void RecordingRuntime::fail_at(long call, cudaError_t error, bool lasting) {
  fail_at_ = call;
  error_ = error;
  lasting_ = lasting;
}

cudaError_t RecordingRuntime::call(const std::string& name) {
  journal_ += (journal_.empty() ? "" : ", ") + name;
  const long number = calls_++;
  if (number != fail_at_ && !(has_failed_ && lasting_)) return cudaSuccess;
  if (!has_failed_) failed_ = name;
  has_failed_ = true;
  return remember(error_);
}

cudaError_t RecordingRuntime::give(cudaStream_t stream, const std::string& name,
                                   std::function<void()> work) {
  if (!streams.contains(stream)) complain(name + " on a stream that is not there");
  if (stream->device != device) complain(name + " with another device current");
  if (const cudaError_t error = call(name); error != cudaSuccess) return error;
  auto& steps = stream->capture ? stream->capture->steps : stream->pending;
  steps.push_back({name, std::move(work)});
  return cudaSuccess;
}

void RecordingRuntime::run(FakeStream& stream) {
  if (hangs) return;
  const std::vector<FakeStep> steps = std::exchange(stream.pending, {});
  if (has_failed_ && lasting_) return;  // nothing comes back from a device that has failed
  for (const FakeStep& step : steps) {
    ++time;
    step.work();
  }
}

void RecordingRuntime::run() {
  for (FakeStream* stream : streams) run(*stream);
}

void RecordingRuntime::check_range(const void* memory, std::size_t bytes, bool on_device,
                                   const char* what) {
  const auto* begin = static_cast<const std::byte*>(memory);
  auto it = memory_.upper_bound(begin);
  const bool is_known =
      it != memory_.begin() && begin + bytes <= std::prev(it)->first + std::prev(it)->second.bytes;
  if (!is_known || (std::prev(it)->second.device >= 0) != on_device)
    complain(std::string(what) + ": memory that is not there");
}

void* RecordingRuntime::take(std::size_t bytes, bool on_device) {
  std::size_t used = 0;
  for (const auto& [memory, known] : memory_)
    if (known.device == (on_device ? device : -1)) used += known.bytes;
  const std::size_t limit =
      on_device ? devices.at(static_cast<std::size_t>(device)).memory : pinned_limit;
  if (used + bytes > limit) return nullptr;
  auto* memory = static_cast<std::byte*>(std::aligned_alloc(256, (bytes + 255) / 256 * 256));
  std::memset(memory, 0xFF, bytes);
  memory_[memory] = {bytes, on_device ? device : -1};
  return memory;
}

void RecordingRuntime::release(void* memory, bool on_device) {
  const auto it = memory_.find(static_cast<std::byte*>(memory));
  if (it == memory_.end()) return complain("memory given back that was never taken");
  if (it->second.device != (on_device ? device : -1))
    complain("memory given back to another device");
  std::free(memory);
  memory_.erase(it);
}

std::string RecordingRuntime::take_calls() { return std::exchange(journal_, {}); }

std::string RecordingRuntime::complaints() const {
  std::string out = complaints_;
  const auto held = [&out](std::size_t n, const char* what) {
    if (n > 0) out += std::to_string(n) + " " + what + " not given back\n";
  };
  held(streams.size(), "streams");
  held(events.size(), "events");
  held(graphs.size(), "graphs");
  held(executables.size(), "executable graphs");
  held(static_cast<std::size_t>(kernels), "tables of kernels");
  held(memory_.size(), "pieces of memory");
  return out;
}

}  // namespace melflow::test
