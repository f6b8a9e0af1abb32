#include "tests/emulated/recording_runtime.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace melflow::test {
namespace {

RecordingRuntime* g_now = nullptr;

// Where the program looks for cuFFT by default.
const int is_cufft_set = setenv("MELFLOW_CUFFT", MELFLOW_EMULATED_CUFFT, 0);

// Guard bytes before and after each allocation. AddressSanitizer has guards of its own.
#if defined(__SANITIZE_ADDRESS__)
constexpr std::size_t fence_bytes = 0;
#else
constexpr std::size_t fence_bytes = 256;
#endif

// No other thread has this memory yet, so ThreadSanitizer need not watch. It would write four times
// as much, which would take most of a test's time. (GCC and clang know this spelling.)
__attribute__((no_sanitize("thread"))) void fill_with_nan(std::uint64_t* memory,
                                                          std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) memory[i] = ~std::uint64_t{0};
}

// The runtime of a program that creates none.
class OfProgram {
 public:
  ~OfProgram() {
    const std::string complaints = runtime.complaints();
    if (complaints.empty()) return;
    std::fprintf(stderr, "emulated device: %s", complaints.c_str());
    std::_Exit(1);
  }
  RecordingRuntime runtime;
};

}  // namespace

thread_local int RecordingRuntime::device = 0;
thread_local cudaError_t RecordingRuntime::last_ = cudaSuccess;

std::uint64_t RecordingRuntime::seed() {
  const char* const given = std::getenv("MELFLOW_SEED");
  return given == nullptr ? 1 : std::strtoull(given, nullptr, 10);
}

RecordingRuntime::RecordingRuntime(std::vector<FakeDevice> all)
    : devices(std::move(all)), random_(seed() * 2 + 1) {
  (void)is_cufft_set;
  g_now = this;
  device = 0;
  last_ = cudaSuccess;
}

RecordingRuntime::~RecordingRuntime() {
  {
    const Lock lock(mutex);
    is_closed_ = true;
  }
  changed_.notify_all();
  if (driver_.joinable()) driver_.join();
  for (const auto& [memory, known] : memory_) std::free(known.taken);
  for (FakeStream* s : streams) delete s;
  for (FakeEvent* e : events) delete e;
  for (FakeGraph* g : graphs) delete g;
  for (FakeExecutable* e : executables) delete e;
  g_now = nullptr;
}

RecordingRuntime& RecordingRuntime::now() {
  if (g_now != nullptr) return *g_now;
  static OfProgram of_program;
  return of_program.runtime;
}

unsigned RecordingRuntime::draw(unsigned below) {
  random_ = random_ * 6364136223846793005ULL + 1442695040888963407ULL;
  return static_cast<unsigned>((random_ >> 33) % below);
}

void RecordingRuntime::fail_at(long call, cudaError_t error, bool lasting) {
  fail_at_ = call;
  error_ = error;
  lasting_ = lasting;
}

void RecordingRuntime::complain(const std::string& text) {
  const Lock lock(mutex);
  if (complaints_.size() < 10'000) complaints_ += text + "\n";
}

cudaError_t RecordingRuntime::call(const std::string& name) {
  const Lock lock(mutex);
  if (!driver_.joinable()) journal_ += (journal_.empty() ? "" : ", ") + name;
  if (broken == device) return remember(cudaErrorLaunchFailure);
  const long number = calls_++;
  if (number != fail_at_ && !(has_failed_ && lasting_)) return cudaSuccess;
  if (!has_failed_) failed_ = name;
  has_failed_ = true;
  return remember(error_);
}

FakeStream& RecordingRuntime::null_stream() {
  const Lock lock(mutex);
  auto& stream = null_streams_[device];
  if (stream == nullptr)
    stream.reset(new FakeStream{device, FakeStream::Kind::null, {}, false, nullptr});
  return *stream;
}

cudaError_t RecordingRuntime::give(cudaStream_t stream, const std::string& name,
                                   std::function<FakeWork()> begin) {
  const Lock lock(mutex);
  if (stream == nullptr)
    stream = &null_stream();
  else if (!streams.contains(stream))
    complain(name + " on a stream that is not there");
  if (stream->device != device) complain(name + " with another device current");
  if (const cudaError_t error = call(name); error != cudaSuccess) return error;
  if (stream->capture)
    stream->capture->steps.push_back({name, std::move(begin)});
  else
    stream->pending.push_back({given_++, begin()});
  changed_.notify_all();
  return cudaSuccess;
}

cudaError_t RecordingRuntime::give_all(cudaStream_t stream, const std::vector<FakeStep>& steps) {
  const Lock lock(mutex);
  if (stream->device != device) complain("a graph is launched with another device current");
  if (const cudaError_t error = call("launch graph"); error != cudaSuccess) return error;
  ++counts.replays;
  for (const FakeStep& step : steps) stream->pending.push_back({given_++, step.begin()});
  changed_.notify_all();
  return cudaSuccess;
}

bool RecordingRuntime::does_nothing(const FakeStream& stream) const {
  return hangs || stream.device == hung;
}

FakeStream& RecordingRuntime::first_before(FakeStream& stream) {
  using Kind = FakeStream::Kind;
  if (stream.kind == Kind::alone || stream.pending.empty()) return stream;
  FakeStream* first = &stream;
  const auto look_at = [&](FakeStream& other) {
    const bool is_before =
        other.kind == (stream.kind == Kind::null ? Kind::waits_for_null : Kind::null) &&
        other.device == stream.device && !other.pending.empty() &&
        other.pending.front().number < first->pending.front().number;
    if (is_before) first = &other;
  };
  for (FakeStream* s : streams) look_at(*s);
  for (const auto& [index, s] : null_streams_) look_at(*s);
  return *first;
}

bool RecordingRuntime::step(Lock& lock, FakeStream& wanted) {
  if (does_nothing(wanted)) return false;
  if (wanted.is_busy) {
    changed_.wait(lock);
    return true;
  }
  if (wanted.pending.empty()) return false;
  if ((has_failed_ && lasting_) || broken == wanted.device) {
    wanted.pending.clear();  // nothing returns from a device that has failed
    return false;
  }
  FakeStream& stream = first_before(wanted);
  if (stream.is_busy) {
    changed_.wait(lock);
    return true;
  }
  const FakeWork work = std::move(stream.pending.front().work);
  stream.pending.pop_front();
  stream.is_busy = true;
  ++steps_;
  lock.unlock();
  work();
  lock.lock();
  stream.is_busy = false;
  changed_.notify_all();
  return true;
}

void RecordingRuntime::wait_for_step(FakeStream& stream) {
  Lock lock(mutex);
  changed_.wait(lock, [&] { return !stream.is_busy; });
}

bool RecordingRuntime::may_drop(const FakeStream& stream) {
  const Lock lock(mutex);
  return stream.pending.empty() || has_failed_ || broken == stream.device || does_nothing(stream);
}

void RecordingRuntime::run(FakeStream& stream) {
  Lock lock(mutex);
  while (step(lock, stream)) {
  }
}

FakeStream* RecordingRuntime::draw_stream() {
  std::vector<FakeStream*> all;
  const auto look_at = [&](FakeStream& s) {
    if (!s.pending.empty() && !s.is_busy && !does_nothing(s)) all.push_back(&s);
  };
  for (FakeStream* s : streams) look_at(*s);
  for (const auto& [index, s] : null_streams_) look_at(*s);
  return all.empty() ? nullptr : all[draw(static_cast<unsigned>(all.size()))];
}

void RecordingRuntime::run() {
  Lock lock(mutex);
  while (FakeStream* const stream = draw_stream()) step(lock, *stream);
}

void RecordingRuntime::drive() { driver_ = std::thread(&RecordingRuntime::be_driver, this); }

void RecordingRuntime::be_driver() {
  Lock lock(mutex);
  while (!is_closed_) {
    FakeStream* const stream = draw_stream();
    if (stream == nullptr) {
      changed_.wait(lock);
      continue;
    }
    const bool stays = stream->kind == FakeStream::Kind::null;
    // Gives other threads time of varying length.
    if (const unsigned turns = draw(4) == 0 ? draw(64) : 0; turns > 0) {
      lock.unlock();
      for (unsigned i = 0; i < turns; ++i) std::this_thread::yield();
      lock.lock();
    }
    if (stays || streams.contains(stream)) step(lock, *stream);
  }
}

double RecordingRuntime::now_ms() {
  const Lock lock(mutex);
  if (!driver_.joinable()) return steps_;
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double, std::milli>(now).count();
}

void RecordingRuntime::check_range(const void* memory, std::size_t bytes, bool on_device,
                                   const char* what) {
  const Lock lock(mutex);
  const auto* begin = static_cast<const std::byte*>(memory);
  auto it = memory_.upper_bound(begin);
  const bool is_known =
      it != memory_.begin() && begin + bytes <= std::prev(it)->first + std::prev(it)->second.bytes;
  if (!is_known || (std::prev(it)->second.device >= 0) != on_device)
    complain(std::string(what) + ": memory that is not there");
}

void* RecordingRuntime::take(std::size_t bytes, bool on_device) {
  const Lock lock(mutex);
  (on_device ? counts.device_taken : counts.pinned_taken) += bytes;
  std::size_t used = 0;
  for (const auto& [memory, known] : memory_)
    if (known.device == (on_device ? device : -1)) used += known.bytes;
  const std::size_t limit =
      on_device ? devices.at(static_cast<std::size_t>(device)).memory : pinned_limit;
  if (used + bytes > limit) return nullptr;
  void* taken = nullptr;
  if (posix_memalign(&taken, 256, std::max<std::size_t>(bytes, 1) + 2 * fence_bytes) != 0)
    return nullptr;
  const std::size_t filled = bytes + 2 * fence_bytes;
  fill_with_nan(static_cast<std::uint64_t*>(taken), filled / 8);
  std::memset(static_cast<std::byte*>(taken) + filled / 8 * 8, 0xFF, filled % 8);
  auto* const memory = static_cast<std::byte*>(taken) + fence_bytes;
  memory_[memory] = {bytes, on_device ? device : -1, taken};
  return memory;
}

void RecordingRuntime::check_fences(const std::byte* memory, const Memory& known) {
  const auto is_whole = [](const std::byte* from) {
    return std::all_of(from, from + fence_bytes, [](std::byte b) { return b == std::byte{0xFF}; });
  };
  if (!is_whole(memory - fence_bytes) || !is_whole(memory + known.bytes))
    complain("something was written beside memory of " + std::to_string(known.bytes) + " bytes");
}

void RecordingRuntime::release(void* memory, bool on_device) {
  const Lock lock(mutex);
  if (memory == nullptr) return;
  const auto it = memory_.find(static_cast<std::byte*>(memory));
  if (it == memory_.end()) return complain("memory given back that was never taken");
  if (it->second.device != (on_device ? device : -1))
    complain("memory given back to another device");
  check_fences(it->first, it->second);
  std::free(it->second.taken);
  memory_.erase(it);
}

std::string RecordingRuntime::take_calls() { return std::exchange(journal_, {}); }

std::string RecordingRuntime::complaints() {
  const Lock lock(mutex);
  std::string out = complaints_;
  const auto held = [&out](std::size_t n, const char* what) {
    if (n > 0) out += std::to_string(n) + " " + what + " not given back\n";
  };
  held(streams.size(), "streams");
  held(events.size(), "events");
  held(graphs.size(), "graphs");
  held(executables.size(), "executable graphs");
  held(memory_.size(), "pieces of memory");
  held(static_cast<std::size_t>(plans), "plans of cuFFT");
  return out;
}

}  // namespace melflow::test
