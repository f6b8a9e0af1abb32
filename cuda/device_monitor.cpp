#include "cuda/device_monitor.h"

#include <algorithm>
#include <array>
#include <condition_variable>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#include "cuda/error.h"
#include "cuda/nvml_library.h"

namespace melflow::cuda {
namespace {

// NVML between init and shutdown, which NVML counts.
class Session {
 public:
  Session() : f_(library_.functions()) { must(f_.init(), "nvmlInit"); }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  ~Session() { f_.shutdown(); }

  [[nodiscard]] const NvmlFunctions& functions() const { return f_; }

  void must(int result, const std::string& call) const {
    if (result != 0) throw CudaError(call + ": " + f_.error_text(result));
  }

 private:
  NvmlLibrary library_;
  const NvmlFunctions& f_;
};

std::string driver_version(const Session& nvml) {
  std::array<char, 96> text{};
  const int result = nvml.functions().driver_version(text.data(), text.size() - 1);
  return result == 0 ? text.data() : "";
}

// Samples one device; a call that NVML refuses is not repeated.
class Sampler {
 public:
  Sampler(const Session& nvml, const GpuInfo& device, DeviceUse& use) : nvml_(nvml), use_(use) {
    use_.index = device.index;
    use_.name = device.name;
    attempt(has_device_, [&] {
      nvml_.must(nvml_.functions().device_by_pci_bus_id(device.pci_bus_id.c_str(), &handle_),
                 "nvmlDeviceGetHandleByPciBusId(" + device.pci_bus_id + ")");
    });
  }

  void sample() {
    if (!has_device_) return;
    const NvmlFunctions& f = nvml_.functions();
    attempt(has_utilization_, [&] {
      NvmlFunctions::Utilization now;
      nvml_.must(f.utilization(handle_, &now), "nvmlDeviceGetUtilizationRates");
      sum_ += now.gpu;
      use_.mean_utilization = sum_ / static_cast<double>(++use_.samples);
      use_.most_utilization = std::max(use_.most_utilization, now.gpu);
      add_to_pieces(now.gpu);
    });
    attempt(has_memory_, [&] {
      NvmlFunctions::Memory now;
      nvml_.must(f.memory(handle_, &now), "nvmlDeviceGetMemoryInfo");
      use_.most_memory = std::max(use_.most_memory, static_cast<std::size_t>(now.used));
      use_.total_memory = static_cast<std::size_t>(now.total);
    });
    // Not every device is on a PCIe bus, so a refusal is no reason for a message.
    unsigned generation = 0, width = 0;
    if (f.pcie_generation(handle_, &generation) == 0)
      use_.pcie_generation = std::max(use_.pcie_generation, generation);
    if (f.pcie_width(handle_, &width) == 0) use_.pcie_width = std::max(use_.pcie_width, width);
  }

 private:
  void add_to_pieces(double utilization) {
    std::vector<double>& pieces = use_.utilization_over_time;
    const std::size_t in_last = (use_.samples - 1) % use_.samples_of_piece;
    if (in_last > 0) {
      pieces.back() += (utilization - pieces.back()) / static_cast<double>(in_last + 1);
      return;
    }
    if (pieces.size() == DeviceUse::kMostPieces) {
      for (std::size_t i = 0; i < pieces.size() / 2; ++i)
        pieces[i] = (pieces[2 * i] + pieces[2 * i + 1]) / 2;
      pieces.resize(pieces.size() / 2);
      use_.samples_of_piece *= 2;
    }
    pieces.push_back(utilization);
  }
  template <class F>
  void attempt(bool& is_possible, F&& call) {
    if (!is_possible) return;
    try {
      call();
    } catch (const CudaError& e) {
      is_possible = false;
      if (use_.missing.empty()) use_.missing = e.what();
    }
  }

  const Session& nvml_;
  DeviceUse& use_;
  NvmlFunctions::Device handle_ = nullptr;
  bool has_device_ = true, has_utilization_ = true, has_memory_ = true;
  double sum_ = 0;
};

}  // namespace

struct DeviceMonitor::Watch {
  std::mutex mutex;
  std::condition_variable changed;
  bool is_ending = false, has_ended = false;
  DeviceUses uses;  // written by the thread until it has ended

  // Sleeps for `period`; returns false once the sampling has to end.
  bool sleep(std::chrono::milliseconds period) {
    std::unique_lock lock(mutex);
    return !changed.wait_for(lock, period, [this] { return is_ending; });
  }

  // Also opens NVML, which may take a while: the run need not wait for it.
  void sample(const std::vector<GpuInfo>& devices, std::chrono::milliseconds period) {
    const Session nvml;
    uses.driver_version = driver_version(nvml);
    uses.devices.resize(devices.size());
    std::vector<Sampler> samplers;
    for (std::size_t i = 0; i < devices.size(); ++i)
      samplers.emplace_back(nvml, devices[i], uses.devices[i]);
    const auto all = [&] {
      for (Sampler& s : samplers) s.sample();
    };
    while (sleep(period)) all();
    all();
  }

  void end() {
    const std::lock_guard lock(mutex);
    has_ended = true;
    changed.notify_all();
  }
};

DeviceMonitor::DeviceMonitor(std::vector<GpuInfo> devices, std::chrono::milliseconds patience,
                             std::chrono::milliseconds period)
    : watch_(std::make_shared<Watch>()), patience_(patience) {
  try {
    std::thread([watch = watch_, devices = std::move(devices), period] {
      try {
        watch->sample(devices, period);
      } catch (const std::exception& e) {
        watch->uses.why_none = e.what();
      }
      watch->end();
    }).detach();
  } catch (const std::system_error& e) {
    watch_->uses.why_none = e.what();
    watch_->has_ended = true;
  }
}

DeviceMonitor::~DeviceMonitor() { finish(); }

DeviceUses DeviceMonitor::finish() {
  std::unique_lock lock(watch_->mutex);
  watch_->is_ending = true;
  watch_->changed.notify_all();
  if (watch_->changed.wait_for(lock, patience_, [this] { return watch_->has_ended; }))
    return watch_->uses;
  DeviceUses none;
  none.why_none = "NVML does not answer";
  return none;
}

}  // namespace melflow::cuda
