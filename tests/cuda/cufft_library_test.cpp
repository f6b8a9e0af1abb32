// Where cuFFT is searched for, and the message when it is missing.

#include "cuda/cufft_library.h"

#include <doctest/doctest.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "cuda/error.h"

#include "tests/support/skip.h"

namespace melflow::cuda {
namespace {

std::string message_for(const std::vector<std::string>& places) {
  try {
    const CufftLibrary library(places);
  } catch (const CudaError& error) {
    return error.what();
  }
  return {};
}

TEST_CASE("cufft library: the message says where it looked and how to help") {
  const std::string text = message_for({"/no/folder", "/no/file/libcufft.so.99"});
  CAPTURE(text);
  CHECK(
      text.starts_with("cuFFT (libcufft.so.12, libcufft.so.11 or libcufft.so.10) is not in "
                       "/no/folder, /no/file/libcufft.so.99; MELFLOW_CUFFT can name its folder"));
  CHECK(text.find("cannot open shared object file") != std::string::npos);
}

TEST_CASE("cufft library: another library under its name is refused") {
  CHECK(message_for({"libm.so.6"}) == "libm.so.6 has no cufftCreate, so it is not cuFFT");
}

TEST_CASE("cufft library: the environment comes first, the usual places after it") {
  const auto places_with = [](const char* cufft, const char* home) {
    setenv("MELFLOW_CUFFT", cufft, 1);
    setenv("CUDA_HOME", home, 1);
    std::vector<std::string> places = CufftLibrary::default_places();
    unsetenv("MELFLOW_CUFFT");
    unsetenv("CUDA_HOME");
    return places;
  };
  using Places = std::vector<std::string>;
  CHECK(places_with("/wheel/lib", "/opt/cuda") ==
        Places{"/wheel/lib", "", "/opt/cuda/lib64", "/usr/local/cuda/lib64"});
  CHECK(places_with("", "") == Places{"", "/usr/local/cuda/lib64"});
}

TEST_CASE("cufft library: it is opened where it is installed") {
  try {
    const CufftLibrary library;
    int version = 0;
    CHECK(library.functions().get_version(&version) == 0);
    CHECK(version >= 10000);
    MESSAGE(library.path() << ", version " << version);
  } catch (const CudaError& error) {
    test::skip(error.what());
  }
}

TEST_CASE("cufft errors have their names") {
  CHECK(std::string(cufft_error_name(2)) == "CUFFT_ALLOC_FAILED");
  CHECK(std::string(cufft_error_name(16)) == "CUFFT_NOT_SUPPORTED");
  CHECK(std::string(cufft_error_name(19)).starts_with("CUFFT_NVJITLINK_FAILURE"));
  CHECK(std::string(cufft_error_name(-1)) == cufft_error_name(999));
  CHECK(std::string(cufft_error_name(999)) == "an error that cuFFT's documentation does not name");
}

}  // namespace
}  // namespace melflow::cuda
