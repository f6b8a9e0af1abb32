#include "tests/support/host_gpu.h"

#include <unistd.h>
#include <xxhash.h>

#include <array>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "cuda/error.h"
#include "cuda/mel_tables.h"
#include "stages/features/mel/fftw.h"
#include "stages/features/mel/mel_signal.h"
#include "tests/support/host_driver.h"

namespace melflow::test {
namespace {

using cuda::CudaError;

class HostMel final : public cuda::MelProgram {
 public:
  HostMel(const cuda::FrontEnd& front_end, const cuda::KernelOptions& options,
          std::uint32_t most_frames)
      : operands_(options.operands),
        rows_(options.rows),
        any_(front_end),
        fft_(front_end.settings.n_fft) {
    const bool has_fused = cuda::has_fused_kernel(front_end);
    if (has_fused && options.path != cuda::Path::cufft)
      fused_ = std::make_unique<cuda::FusedTables>(front_end, options.operands);
    if (!front_end.condition) return;
    condition_ = *front_end.condition;
    conditioned_ = most_frames * static_cast<std::size_t>(condition_->stride);
    frames_ = most_frames;
  }
  [[nodiscard]] std::string description() const override { return fused_ ? "fused" : "cufft"; }
  [[nodiscard]] std::size_t scratch_bytes() const override {
    return (fused_ ? 0 : 256) + sizeof(float) * conditioned_ + sizeof(std::uint32_t) * frames_;
  }

  void run(const cuda::MelWork& work) const {
    cuda::HostBatch batch;
    batch.samples = work.samples;
    batch.sample_type = work.sample_type;
    batch.offsets = work.offsets;
    batch.n_frames = *work.n_frames;
    if (condition_) {
      auto* conditioned = static_cast<float*>(work.scratch);
      auto* offsets = reinterpret_cast<std::uint32_t*>(conditioned + conditioned_);
      cuda::run_condition(*condition_, batch, conditioned, offsets);
      batch = {conditioned, cuda::SampleType::float32, offsets, batch.n_frames};
    }
    cuda::Rows rows;
    rows.data = work.rows;
    rows.type = rows_;
    if (fused_) return cuda::run_fused(*fused_, operands_, batch, rows);
    const auto n_fft = static_cast<std::size_t>(any_.settings.n_fft);
    const auto n_bins = static_cast<std::size_t>(any_.settings.n_bins);
    std::vector<float> frames(batch.n_frames * n_fft);
    std::vector<cuda::Complex> spectra(batch.n_frames * n_bins);
    cuda::run_window(any_, batch, frames.data());
    AlignedBuffer in(n_fft), out(2 * n_bins);
    for (std::size_t t = 0; t < batch.n_frames; ++t) {
      std::copy_n(frames.data() + t * n_fft, n_fft, in.data());
      fft_.execute(in.data(), out.data());
      for (std::size_t k = 0; k < n_bins; ++k)
        spectra[t * n_bins + k] = {out.data()[2 * k], out.data()[2 * k + 1]};
    }
    cuda::run_levels(any_, spectra.data(), batch.n_frames, rows, true);
  }

 private:
  cuda::NumberType operands_, rows_;
  std::optional<cuda::ConditionSettings> condition_;
  std::size_t conditioned_ = 0, frames_ = 0;  // floats of conditioned frames, and their number
  cuda::AnySizeTables any_;
  FftPlan fft_;
  std::unique_ptr<cuda::FusedTables> fused_;
};

using Step = std::function<void()>;

struct HostRecording final : cuda::Recording {
  // Makes the step of one launch: what it looks at is as it is then.
  std::vector<std::function<Step()>> steps;
};

class HostStream final : public cuda::Stream {
 public:
  HostStream(HostGpus& gpus, int index) : gpus_(gpus), index_(index), thread_([this] { run(); }) {}
  HostStream(const HostStream&) = delete;
  HostStream& operator=(const HostStream&) = delete;
  ~HostStream() override {
    {
      const std::lock_guard lock(mutex_);
      closed_ = true;
    }
    came_.notify_all();
    thread_.join();
  }

  void copy_in(void* device, const void* host, std::size_t bytes) override {
    const long before = gpus_.counts.copies_in++;
    int none = -1;
    if (gpus_.options().break_at >= 0 && before >= gpus_.options().break_at)
      gpus_.broken.compare_exchange_strong(none, index_);
    if (gpus_.options().hang_at >= 0 && before >= gpus_.options().hang_at)
      gpus_.hung.compare_exchange_strong(none, index_);
    give([this, device, host, bytes]() -> Step {
      const std::uint64_t as_given = XXH3_64bits(host, bytes);
      return [this, device, host, bytes, as_given] {
        if (XXH3_64bits(host, bytes) != as_given)
          gpus_.complain("pinned memory changed before it was copied");
        std::memcpy(device, host, bytes);
      };
    });
  }

  void copy_out(void* host, const void* device, std::size_t bytes) override {
    give([this, host, device, bytes]() -> Step {
      std::memset(host, 0xFF, bytes);  // NaN for whoever looks too early
      return [this, host, device, bytes] {
        std::memcpy(host, device, bytes);
        gpus_.counts.bytes_out += bytes;
      };
    });
  }

  void mel(cuda::MelProgram& program, const cuda::MelWork& work) override {
    ++gpus_.counts.launches;
    give([&program, work]() -> Step {
      return [&program, work] { static_cast<HostMel&>(program).run(work); };
    });
  }

  void call(void (*function)(void*), void* argument) override {
    give([function, argument]() -> Step { return [function, argument] { function(argument); }; });
  }

  [[nodiscard]] std::unique_ptr<cuda::Recording> record(
      const std::function<void()>& work) override {
    auto out = std::make_unique<HostRecording>();
    recording_ = out.get();
    work();
    recording_ = nullptr;
    return out;
  }

  void launch(cuda::Recording& recording) override {
    ++gpus_.counts.replays;
    for (const auto& step : static_cast<HostRecording&>(recording).steps) put(step());
  }

  void mark(int place) override {
    give([this, place]() -> Step {
      return [this, place] {
        marks_.at(static_cast<std::size_t>(place)) = std::chrono::steady_clock::now();
      };
    });
  }
  [[nodiscard]] double between(int from, int to) override {
    check();
    return std::chrono::duration<double>(marks_.at(static_cast<std::size_t>(to)) -
                                         marks_.at(static_cast<std::size_t>(from)))
        .count();
  }

  void check() override {
    if (is_broken()) throw CudaError("cudaStreamQuery: the device is broken");
  }

  void wait() override {
    check();
    std::unique_lock lock(mutex_);
    idle_.wait(lock, [this] { return steps_.empty() && !is_busy_; });
  }

 private:
  void give(std::function<Step()> make) {
    if (recording_ != nullptr)
      recording_->steps.push_back(std::move(make));
    else
      put(make());
  }
  void put(Step step) {
    {
      const std::lock_guard lock(mutex_);
      steps_.push_back(std::move(step));
    }
    came_.notify_one();
  }
  void run() {
    std::unique_lock lock(mutex_);
    for (;;) {
      came_.wait(lock, [this] { return closed_ || !steps_.empty(); });
      if (steps_.empty()) return;
      const Step step = std::move(steps_.front());
      steps_.pop_front();
      is_busy_ = true;
      lock.unlock();
      if (gpus_.hung == index_) hang();
      if (!is_broken()) step();
      std::this_thread::yield();
      lock.lock();
      is_busy_ = false;
      if (steps_.empty()) idle_.notify_all();
    }
  }

  // For ever. Whoever owns this stream leaves it as it is, also when the test is long over.
  [[noreturn]] void hang() {
    ++gpus_.counts.hung_streams;
    thread_.detach();
    for (;;) pause();
  }

  [[nodiscard]] bool is_broken() const { return gpus_.broken == index_; }

  HostGpus& gpus_;
  int index_;
  HostRecording* recording_ = nullptr;
  std::array<std::chrono::steady_clock::time_point, places> marks_;
  std::mutex mutex_;
  std::condition_variable came_, idle_;
  std::deque<Step> steps_;
  bool is_busy_ = false, closed_ = false;
  std::thread thread_;  // last: it uses all of them
};

// No other thread has this memory yet, so ThreadSanitizer need not watch. It would write four times
// as much, which would be most of the time of a test. (GCC and clang know this spelling.)
__attribute__((no_sanitize("thread"))) void fill_with_nan(std::uint64_t* memory,
                                                          std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) memory[i] = ~std::uint64_t{0};
}

class HostGpu final : public cuda::Gpu {
 public:
  HostGpu(HostGpus& gpus, int index) : gpus_(gpus), index_(index) {}

  [[nodiscard]] cuda::GpuInfo info() const override {
    return gpus_.infos().at(static_cast<std::size_t>(index_));
  }
  [[nodiscard]] void* allocate(std::size_t bytes) override {
    if (index_ == gpus_.options().full) return nullptr;
    gpus_.device_taken += bytes;
    return take(bytes, gpus_.device_used, gpus_.options().device_memory);
  }
  void release(void* memory) noexcept override { free(memory, gpus_.device_used); }
  [[nodiscard]] void* allocate_pinned(std::size_t bytes) override {
    gpus_.pinned_taken += bytes;
    return take(bytes, gpus_.pinned_used, gpus_.options().pinned_memory);
  }
  void release_pinned(void* memory) noexcept override { free(memory, gpus_.pinned_used); }
  [[nodiscard]] std::unique_ptr<cuda::Stream> make_stream() override {
    return std::make_unique<HostStream>(gpus_, index_);
  }
  [[nodiscard]] std::unique_ptr<cuda::MelProgram> make_mel(const cuda::FrontEnd& front_end,
                                                           const cuda::KernelOptions& options,
                                                           std::uint32_t most_frames) override {
    return std::make_unique<HostMel>(front_end, options, most_frames);
  }

 private:
  void* take(std::size_t bytes, std::atomic<std::size_t>& used, std::size_t limit) {
    if (used.fetch_add(bytes) + bytes > limit) {
      used -= bytes;
      return nullptr;
    }
    const std::size_t taken = (bytes + 255) / 256 * 256;
    void* memory = std::aligned_alloc(256, taken);
    fill_with_nan(static_cast<std::uint64_t*>(memory), taken / 8);
    const std::lock_guard lock(mutex_);
    sizes_[memory] = bytes;
    return memory;
  }
  void free(void* memory, std::atomic<std::size_t>& used) noexcept {
    const std::lock_guard lock(mutex_);
    const auto it = sizes_.find(memory);
    if (it == sizes_.end()) return gpus_.complain("memory given back that was never taken");
    used -= it->second;
    sizes_.erase(it);
    std::free(memory);
  }

  HostGpus& gpus_;
  int index_;
  std::mutex mutex_;
  std::map<void*, std::size_t> sizes_;
};

}  // namespace

HostGpus::~HostGpus() {
  release();
  // Whoever hung is gone before this is.
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return counts.hanging == 0; });
}

void HostGpus::release() {
  const std::lock_guard lock(mutex_);
  is_released_ = true;
  changed_.notify_all();
}

std::vector<cuda::GpuInfo> HostGpus::infos() const {
  std::vector<cuda::GpuInfo> out;
  out.reserve(static_cast<std::size_t>(options_.devices));
  for (int i = 0; i < options_.devices; ++i)
    out.push_back({i, "a thread of the host", i == 0 ? "host" : options_.second_architecture,
                   options_.device_memory, HostGpus::bus_id(i)});
  return out;
}

std::unique_ptr<cuda::Gpu> HostGpus::open(int index) {
  if (index == options_.hangs_opening || index == options_.opens_late) {
    std::unique_lock lock(mutex_);
    ++counts.hanging;
    changed_.wait(lock, [this] { return is_released_; });
    --counts.hanging;
    changed_.notify_all();
    if (index == options_.hangs_opening) throw CudaError("it came back too late");
  }
  if (const auto it = options_.refuses.find(index); it != options_.refuses.end())
    throw CudaError(it->second);
  ++counts.opened;
  return std::make_unique<HostGpu>(*this, index);
}

std::string HostGpus::complaints() const {
  const std::lock_guard lock(mutex_);
  std::string out = complaints_;
  if (device_used > 0) out += "device memory was not given back\n";
  if (pinned_used > 0) out += "pinned memory was not given back\n";
  return out;
}

void HostGpus::complain(const std::string& text) {
  const std::lock_guard lock(mutex_);
  complaints_ += text + "\n";
}

}  // namespace melflow::test
