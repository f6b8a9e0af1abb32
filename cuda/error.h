// error.h - the exception for failed calls of CUDA and cuFFT.

#pragma once

#include <stdexcept>
#include <string>

namespace melflow::cuda {

// Text: the name of the call, CUDA's name of the error and its description.
class CudaError : public std::runtime_error {
 public:
  explicit CudaError(const std::string& text) : std::runtime_error(text) {}
};

}  // namespace melflow::cuda
