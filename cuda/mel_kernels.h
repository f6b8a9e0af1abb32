// mel_kernels.h - computes mel rows on a CUDA device.
//
// In:  a batch in the work format of mel_tables.h, in device memory; if FrontEnd::condition is
//      set, the samples as decoded.
// Out: rows [n_frames, columns] in device memory, float32, float16 or bfloat16; a column for the
//      energy is left unchanged.
//
// If FrontEnd::condition is set, a kernel conditions frames first. Then there are two paths. fused:
// one kernel from samples to rows, for the sizes in fused_shape.h. cufft: a kernel, a batch of real
// transforms by cuFFT and another kernel, for any n_fft.

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "cuda/mel_tables.h"
#include "cuda/number_types.h"

namespace melflow::cuda {

enum class Path { automatic, fused, cufft };

struct KernelOptions {
  Path path = Path::automatic;  // fused if available
  // The type of the points that lanes exchange between the passes of the fused transform.
  // Arithmetic is always float. The path cufft supports only float32.
  NumberType operands = NumberType::float32;
  NumberType rows = NumberType::float32;
};

class MelKernels {
 public:
  static constexpr std::uint32_t frame_limit = 1U << 30;  // per launch

  struct Launch {
    const void* samples = nullptr;  // aligned to 16 bytes
    SampleType sample_type = SampleType::int16;
    const std::uint32_t* offsets = nullptr;  // [capacity], not read from n_frames on
    // In device memory, at most `capacity`: a captured graph can be relaunched with another value.
    const std::uint32_t* n_frames = nullptr;
    std::uint32_t capacity = 0;  // the launch's number of frames, at most `most_frames`
    void* rows = nullptr;        // [capacity, columns]; rows from n_frames on are not written
    void* work = nullptr;        // work_bytes(), aligned to 256 bytes
  };

  // Uploads the tables to the current device. `most_frames`: the largest capacity of a launch.
  // Throws CudaError, and std::invalid_argument if the options are not available.
  MelKernels(const FrontEnd& front_end, const KernelOptions& options, std::uint32_t most_frames);
  ~MelKernels();
  MelKernels(const MelKernels&) = delete;
  MelKernels& operator=(const MelKernels&) = delete;

  // The chosen path; never Path::automatic.
  Path path() const;
  // For a run's provenance: the path, the operands and, for cuFFT, its version and file.
  std::string description() const;
  // Device memory that a launch needs besides its batch and rows; launches that may overlap need
  // one such area each.
  std::size_t work_bytes() const;

  // Enqueues on `stream` (a cudaStream_t) and returns; synchronises and allocates nothing, so it
  // can be captured into a graph. Work, batch and rows must stay valid until the device is done.
  // For one thread at a time. Throws CudaError, and std::invalid_argument for a launch that does
  // not fit.
  void launch(void* stream, const Launch& launch);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace melflow::cuda
