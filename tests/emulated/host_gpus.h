// Devices for whole jobs: those of the recording runtime, with any defects that a test wants. A
// thread does their work.
//
//   HostGpus gpus({.devices = 2});
//   const cuda::ScopedGpus scope(gpus);
//   ... run a job with backend: cuda ...
//   CHECK(gpus.complaints() == "");
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <map>
#include <mutex>
#include <string>

#include "cuda/machine_gpus.h"
#include "tests/emulated/recording_runtime.h"

namespace melflow::test {

struct HostGpuOptions {
  int devices = 1;
  std::size_t device_memory = std::size_t{1} << 32;  // [bytes]
  std::size_t pinned_memory = std::size_t{1} << 32;
  long break_at = -1;  ///< number of copies to devices that succeed; then one device is broken
  long hang_at = -1;   ///< number of copies to devices that are begun; the next one's device hangs
  std::string why_no_cufft{};
  int second_major = 9;                   ///< compute capability of all devices but the first
  std::map<int, std::string> unusable{};  ///< by index after `devices`, with the reason
  std::map<int, std::string> refuses{};   ///< opening these throws the text
  int full = -1;                          ///< a device with memory for tables only
  int hangs_opening = -1;                 ///< opening this one hangs until release(), then fails
  int opens_late = -1;                    ///< opening this one hangs until release()
};

class HostGpus final : public cuda::Gpus {
 public:
  explicit HostGpus(HostGpuOptions options = {});
  ~HostGpus() override;

  [[nodiscard]] bool may_have_some() const override { return options_.devices > 0; }
  [[nodiscard]] std::vector<cuda::GpuInfo> list() const override {
    ++counts.lists;
    return gpus_->list();
  }
  [[nodiscard]] std::map<int, std::string> unusable() const override { return options_.unusable; }
  [[nodiscard]] std::string why_none() const override { return "the test has none"; }
  [[nodiscard]] std::string why_no_cufft() const override { return options_.why_no_cufft; }
  [[nodiscard]] std::unique_ptr<cuda::Gpu> open(int index) override;
  // On a busy machine a thread may get no core for a while.
  [[nodiscard]] std::chrono::milliseconds patience() const override {
    return std::chrono::hours(1);
  }
  /// Set by the test, so that no device is given up because the machine is busy.
  [[nodiscard]] double now() const override { return time; }
  /// Releases calls that hang while opening a device; the destructor does this, too.
  void release();

  /// See RecordingRuntime.
  [[nodiscard]] std::string complaints() { return runtime.complaints(); }

  struct Counts {
    std::atomic<int> opened{0}, hanging{0}, lists{0};
  };
  mutable Counts counts;
  std::atomic<double> time{0};  ///< [s]

 private:
  HostGpuOptions options_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_released_ = false;

 public:
  RecordingRuntime runtime;

 private:
  std::unique_ptr<cuda::Gpus> gpus_ = cuda::look_for_gpus();
};

}  // namespace melflow::test
