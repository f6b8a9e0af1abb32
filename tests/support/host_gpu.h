// A device that is a thread of the host: the same kernels' phases, run one slot after another, and
// streams that notice when what they work on changes under their hands.
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
#include <utility>

#include "cuda/gpu.h"

namespace melflow::test {

struct HostGpuOptions {
  int devices = 1;
  std::size_t device_memory = std::size_t{1} << 32;  // [bytes]
  std::size_t pinned_memory = std::size_t{1} << 32;
  long break_at = -1;  ///< that many copies to a device go well; then one device is broken
  long hang_at = -1;   ///< that many copies to a device are begun; the device of the next one hangs
  std::string why_no_cufft{};
  std::string second_architecture = "host";  ///< of all devices but the first
  std::map<int, std::string> unusable{};     ///< by index beyond `devices`, and why
  std::map<int, std::string> refuses{};      ///< opening these throws that
  int full = -1;                             ///< a device without memory
  int hangs_opening = -1;                    ///< opening this one takes until release(), and fails
  int opens_late = -1;                       ///< opening this one takes until release()
};

class HostGpus final : public cuda::Gpus {
 public:
  explicit HostGpus(HostGpuOptions options = {}) : options_(std::move(options)) {}
  ~HostGpus() override;

  [[nodiscard]] bool may_have_some() const override { return options_.devices > 0; }
  [[nodiscard]] std::vector<cuda::GpuInfo> list() const override {
    ++counts.lists;
    return infos();
  }
  [[nodiscard]] std::vector<cuda::GpuInfo> infos() const;
  [[nodiscard]] std::map<int, std::string> unusable() const override { return options_.unusable; }
  [[nodiscard]] std::string why_none() const override { return "the test has none"; }
  [[nodiscard]] std::string why_no_cufft() const override { return options_.why_no_cufft; }
  [[nodiscard]] std::unique_ptr<cuda::Gpu> open(int index) override;
  // On a machine that does other things a thread may get no core for a while.
  [[nodiscard]] std::chrono::milliseconds patience() const override {
    return std::chrono::hours(1);
  }
  /// As the test says: no device is given up because the machine is busy.
  [[nodiscard]] double now() const override { return time; }
  /// Lets go on what hangs; the destructor does, too.
  void release();

  /// What went wrong in the order of things, or "" : memory that changed while it was copied,
  /// memory that was never given back.
  [[nodiscard]] std::string complaints() const;
  void complain(const std::string& text);

  struct Counts {
    std::atomic<long> copies_in{0}, launches{0}, replays{0};
    std::atomic<int> opened{0}, hanging{0}, lists{0}, hung_streams{0};
    std::atomic<std::size_t> bytes_out{0};  ///< copied from devices
  };
  mutable Counts counts;

  /// No device of any machine has this one.
  [[nodiscard]] static std::string bus_id(int index) { return "host:" + std::to_string(index); }
  [[nodiscard]] const HostGpuOptions& options() const { return options_; }
  std::atomic<std::size_t> device_used{0}, pinned_used{0};
  /// Taken in all, given back or not.
  std::atomic<std::size_t> device_taken{0}, pinned_taken{0};
  std::atomic<double> time{0};  ///< [s]
  /// The device from which no call comes back any more, or -1.
  std::atomic<int> broken{-1};
  /// The device that does nothing any more, or -1.
  std::atomic<int> hung{-1};

 private:
  HostGpuOptions options_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool is_released_ = false;
  std::string complaints_;
};

}  // namespace melflow::test
