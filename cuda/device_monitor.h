// device_monitor.h - how devices are used during a run, according to NVML.
//
// In:  devices, by PCI bus id: NVML does not know CUDA_VISIBLE_DEVICES.
// Out: the use of each, or why it is not known. A run never fails because of this.

#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "cuda/gpu.h"

namespace melflow::cuda {

// The use of one device, including that by other programs.
struct DeviceUse {
  int index = 0;  // CUDA's
  std::string name;
  std::size_t samples = 0;      // behind the two values below
  double mean_utilization = 0;  // [%] of the time in which some kernel was running
  unsigned most_utilization = 0;
  // Means of equal numbers of samples, one after another, of which there are at most kMostPieces:
  // where there would be more, two become one.
  std::vector<double> utilization_over_time;  // [%]
  std::size_t samples_of_piece = 1;
  static constexpr std::size_t kMostPieces = 100;
  std::size_t most_memory = 0, total_memory = 0;  // [bytes]; total 0: not known
  unsigned pcie_generation = 0, pcie_width = 0;   // the highest seen; 0: not known
  std::string missing;  // why something is not known, by the first call that failed; or ""
};

struct DeviceUses {
  std::string why_none;        // or ""
  std::string driver_version;  // or ""
  std::vector<DeviceUse> devices;
};

class DeviceMonitor {
 public:
  // Samples on a thread of its own, once every `period` and once at the end. NVML's values are
  // means over 1/6 to 1 s, depending on the device.
  DeviceMonitor(std::vector<GpuInfo> devices, std::chrono::milliseconds patience,
                std::chrono::milliseconds period = std::chrono::milliseconds(100));
  DeviceMonitor(const DeviceMonitor&) = delete;
  DeviceMonitor& operator=(const DeviceMonitor&) = delete;
  ~DeviceMonitor();

  // Ends the sampling at once and returns the results. Waits at most `patience` for a call into
  // NVML that does not return (a broken device), and then abandons it.
  DeviceUses finish();

 private:
  struct Watch;
  std::shared_ptr<Watch> watch_;  // shared with the thread
  std::chrono::milliseconds patience_;
};

}  // namespace melflow::cuda
