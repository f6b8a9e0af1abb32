// device_monitor.h - how devices are used while a run goes on, as NVML tells.
//
// In:  devices, by their place on the PCI bus: NVML knows nothing of CUDA_VISIBLE_DEVICES.
// Out: what was seen of each, or why nothing was. A run never fails for it.

#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "cuda/gpu.h"

namespace melflow::cuda {

// How one device was used, by other programs as well.
struct DeviceUse {
  int index = 0;  // CUDA's
  std::string name;
  std::size_t samples = 0;      // that the two below are made of
  double mean_utilization = 0;  // [%] of the time, in which some kernel was running
  unsigned most_utilization = 0;
  std::size_t most_memory = 0, total_memory = 0;  // [bytes]; total 0: not known
  unsigned pcie_generation = 0, pcie_width = 0;   // the most that was seen; 0: not known
  std::string missing;  // why something is not known, of the first call that failed; or ""
};

struct DeviceUses {
  std::string why_none;        // or ""
  std::string driver_version;  // or ""
  std::vector<DeviceUse> devices;
};

class DeviceMonitor {
 public:
  // Samples on a thread of its own, once every `period` and once at the end. NVML's figures are
  // means over 1/6 to 1 s, as the device has it.
  DeviceMonitor(std::vector<GpuInfo> devices, std::chrono::milliseconds patience,
                std::chrono::milliseconds period = std::chrono::milliseconds(100));
  DeviceMonitor(const DeviceMonitor&) = delete;
  DeviceMonitor& operator=(const DeviceMonitor&) = delete;
  ~DeviceMonitor();

  // Ends the sampling at once and returns what was seen. A call into NVML that does not return (a
  // device that broke) is waited for no longer than `patience`, and then left to itself.
  DeviceUses finish();

 private:
  struct Watch;
  std::shared_ptr<Watch> watch_;  // with the thread
  std::chrono::milliseconds patience_;
};

}  // namespace melflow::cuda
