// error.h - the exception for failed calls of CUDA and cuFFT.

#pragma once

#include <stdexcept>
#include <string>

namespace melflow::cuda {

// Text: the call's name, CUDA's name of the error and its sentence.
class CudaError : public std::runtime_error {
 public:
  explicit CudaError(const std::string& text) : std::runtime_error(text) {}
};

}  // namespace melflow::cuda
