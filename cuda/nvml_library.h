// nvml_library.h - NVML, NVIDIA's management library, opened when a run needs to know how its
// devices are used.
//
// In:  the file to open.
// Out: its functions. It comes with the driver.

#pragma once

#include <string>

#include "cuda/shared_library.h"

namespace melflow::cuda {

// The part of nvml.h that is used. Every function but error_text returns 0 or an error that
// error_text explains.
struct NvmlFunctions {
  using Device = void*;
  struct Utilization {
    unsigned gpu = 0;     // [%] of the last sample period in which some kernel was running
    unsigned memory = 0;  // [%] of that period in which device memory was read or written
  };
  struct Memory {
    unsigned long long total = 0, free = 0, used = 0;  // [bytes]
  };

  int (*init)() = nullptr;
  int (*shutdown)() = nullptr;
  const char* (*error_text)(int) = nullptr;
  int (*driver_version)(char*, unsigned) = nullptr;
  // "0000:65:00.0"
  int (*device_by_pci_bus_id)(const char*, Device*) = nullptr;
  int (*utilization)(Device, Utilization*) = nullptr;
  int (*memory)(Device, Memory*) = nullptr;
  // The current state of the link; the driver may make it slower while a device idles.
  int (*pcie_generation)(Device, unsigned*) = nullptr;
  int (*pcie_width)(Device, unsigned*) = nullptr;
};

class NvmlLibrary {
 public:
  // Throws CudaError with the file's name and the reason why it is not NVML.
  explicit NvmlLibrary(const std::string& path = default_path());

  const NvmlFunctions& functions() const { return functions_; }
  const std::string& path() const { return library_.path(); }

  // $MELFLOW_NVML, or libnvidia-ml.so.1 for the loader to find.
  static std::string default_path();

 private:
  SharedLibrary library_;
  NvmlFunctions functions_;
};

}  // namespace melflow::cuda
