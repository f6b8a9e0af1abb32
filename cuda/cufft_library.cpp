#include "cuda/cufft_library.h"

#include <array>
#include <cstddef>
#include <cstdlib>

#include "cuda/error.h"

namespace melflow::cuda {
namespace {

constexpr std::array names = {"libcufft.so.12", "libcufft.so.11", "libcufft.so.10"};

bool is_file(const std::string& place) { return place.find(".so") != std::string::npos; }

// Returns the names to pass to the loader for one place.
std::vector<std::string> candidates(const std::string& place) {
  if (is_file(place)) return {place};
  std::vector<std::string> all;
  all.reserve(names.size());
  for (const char* name : names) all.push_back(place.empty() ? name : place + "/" + name);
  return all;
}

std::string places_text(const std::vector<std::string>& places) {
  std::string text;
  for (const std::string& place : places) {
    if (!text.empty()) text += ", ";
    text += place.empty() ? "the loader's path" : place;
  }
  return text;
}

CufftFunctions functions_of(const SharedLibrary& library) {
  CufftFunctions f;
  library.find("cufftCreate", f.create);
  library.find("cufftDestroy", f.destroy);
  library.find("cufftSetAutoAllocation", f.set_auto_allocation);
  library.find("cufftMakePlanMany", f.make_plan_many);
  library.find("cufftSetWorkArea", f.set_work_area);
  library.find("cufftSetStream", f.set_stream);
  library.find("cufftExecR2C", f.execute_real_to_complex);
  library.find("cufftGetVersion", f.get_version);
  return f;
}

SharedLibrary open_first(const std::vector<std::string>& places) {
  std::string said;
  for (const std::string& place : places) {
    for (const std::string& candidate : candidates(place)) {
      try {
        return {candidate, "cuFFT"};
      } catch (const CudaError& e) {
        said = e.what();
      }
    }
  }
  throw CudaError("cuFFT (" + std::string(names[0]) + ", " + names[1] + " or " + names[2] +
                  ") is not in " + places_text(places) +
                  "; MELFLOW_CUFFT can name its folder (last answer of the loader: " + said + ")");
}

}  // namespace

const char* cufft_error_name(int result) {
  static constexpr std::array texts = {
      "CUFFT_SUCCESS",
      "CUFFT_INVALID_PLAN",
      "CUFFT_ALLOC_FAILED",
      "CUFFT_INVALID_TYPE",
      "CUFFT_INVALID_VALUE",
      "CUFFT_INTERNAL_ERROR",
      "CUFFT_EXEC_FAILED",
      "CUFFT_SETUP_FAILED",
      "CUFFT_INVALID_SIZE",
      "CUFFT_UNALIGNED_DATA",
      "CUFFT_INCOMPLETE_PARAMETER_LIST",
      "CUFFT_INVALID_DEVICE",
      "CUFFT_PARSE_ERROR",
      "CUFFT_NO_WORKSPACE",
      "CUFFT_NOT_IMPLEMENTED",
      "CUFFT_LICENSE_ERROR",
      "CUFFT_NOT_SUPPORTED",
      "CUFFT_MISSING_DEPENDENCY (a library that cuFFT loads is not there)",
      "CUFFT_NVRTC_FAILURE (libnvrtc, which cuFFT loads, failed)",
      "CUFFT_NVJITLINK_FAILURE (libnvJitLink, which cuFFT loads, failed)",
      "CUFFT_NVSHMEM_FAILURE",
  };
  const auto number = static_cast<std::size_t>(result);
  return number < texts.size() ? texts[number]
                               : "an error that cuFFT's documentation does not name";
}

std::vector<std::string> CufftLibrary::default_places() {
  std::vector<std::string> all;
  if (const char* given = std::getenv("MELFLOW_CUFFT"); given != nullptr && *given != '\0')
    all.emplace_back(given);
  all.emplace_back();
  if (const char* home = std::getenv("CUDA_HOME"); home != nullptr && *home != '\0')
    all.push_back(std::string(home) + "/lib64");
  all.emplace_back("/usr/local/cuda/lib64");
  return all;
}

CufftLibrary::CufftLibrary(const std::vector<std::string>& places)
    : library_(open_first(places)), functions_(functions_of(library_)) {}

}  // namespace melflow::cuda
