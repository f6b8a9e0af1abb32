// cufft_library.h - cuFFT, opened when a run needs it.
//
// In:  the places where it can be.
// Out: its functions. A program that never transforms by cuFFT does not need the library.

#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "cuda/shared_library.h"

namespace melflow::cuda {

// The used part of cufft.h: a batch of real transforms, in a work area of the caller. Functions
// return 0 or an error that cufft_error_name names. Streams are cudaStream_t.
struct CufftFunctions {
  using Plan = int;
  static constexpr int real_to_complex = 0x2a;

  int (*create)(Plan*) = nullptr;
  int (*destroy)(Plan) = nullptr;
  int (*set_auto_allocation)(Plan, int) = nullptr;
  // plan, rank, n, inembed, istride, idist, onembed, ostride, odist, type, batch, work size
  int (*make_plan_many)(Plan, int, int*, int*, int, int, int*, int, int, int, int,
                        std::size_t*) = nullptr;
  int (*set_work_area)(Plan, void*) = nullptr;
  int (*set_stream)(Plan, void*) = nullptr;
  // plan, [batch, n] floats, [batch, n/2 + 1] pairs of floats
  int (*execute_real_to_complex)(Plan, float*, void*) = nullptr;
  int (*get_version)(int*) = nullptr;
};

const char* cufft_error_name(int result);

class CufftLibrary {
 public:
  // Looks in each place for libcufft.so.12, .11, then .10; a place is a folder, the file itself, or
  // empty for the loader's own search. Throws CudaError with every place and the loader's message.
  explicit CufftLibrary(const std::vector<std::string>& places = default_places());
  CufftLibrary(const CufftLibrary&) = delete;
  CufftLibrary& operator=(const CufftLibrary&) = delete;

  const CufftFunctions& functions() const { return functions_; }
  const std::string& path() const { return library_.path(); }

  // $MELFLOW_CUFFT, such as nvidia/cufft/lib of a Python environment, then the loader's own search,
  // $CUDA_HOME/lib64 and /usr/local/cuda/lib64.
  static std::vector<std::string> default_places();

 private:
  SharedLibrary library_;
  CufftFunctions functions_;
};

}  // namespace melflow::cuda
