#include "cuda/nvml_library.h"

#include <cstdlib>

#include "cuda/error.h"

namespace melflow::cuda {
namespace {

SharedLibrary open(const std::string& path) {
  try {
    return {path, "NVML, or an old one"};
  } catch (const CudaError& e) {
    throw CudaError(std::string("NVML, which is part of NVIDIA's driver, is not there (") +
                    e.what() + "); MELFLOW_NVML can name its file");
  }
}

NvmlFunctions nvml_functions_of(const SharedLibrary& library) {
  NvmlFunctions f;
  library.find("nvmlInit_v2", f.init);
  library.find("nvmlShutdown", f.shutdown);
  library.find("nvmlErrorString", f.error_text);
  library.find("nvmlSystemGetDriverVersion", f.driver_version);
  library.find("nvmlDeviceGetHandleByPciBusId_v2", f.device_by_pci_bus_id);
  library.find("nvmlDeviceGetUtilizationRates", f.utilization);
  library.find("nvmlDeviceGetMemoryInfo", f.memory);
  library.find("nvmlDeviceGetCurrPcieLinkGeneration", f.pcie_generation);
  library.find("nvmlDeviceGetCurrPcieLinkWidth", f.pcie_width);
  return f;
}

}  // namespace

std::string NvmlLibrary::default_path() {
  const char* given = std::getenv("MELFLOW_NVML");
  return given != nullptr && *given != '\0' ? given : "libnvidia-ml.so.1";
}

NvmlLibrary::NvmlLibrary(const std::string& path)
    : library_(open(path)), functions_(nvml_functions_of(library_)) {}

}  // namespace melflow::cuda
