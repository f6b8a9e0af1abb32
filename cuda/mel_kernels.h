// mel_kernels.h - mel rows on a CUDA device.
//
// In:  a batch in the work format of mel_tables.h, in device memory; where FrontEnd::condition is
//      set, the samples as they were decoded.
// Out: rows [n_frames, columns] in device memory, float32, float16 or bfloat16; a column for the
//      energy is left as it was.
//
// Where FrontEnd::condition is set, a kernel conditions frames first. Then there are two paths.
// fused: one kernel from samples to rows, for the sizes in fused_shape.h. cufft: a kernel, a batch
// of real transforms by cuFFT and another kernel, for any n_fft.

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
  Path path = Path::automatic;  // fused where there is one
  // Of the points that lanes exchange between the passes of the fused transform. Arithmetic is
  // always in float. The path cufft has float32 only.
  NumberType operands = NumberType::float32;
  NumberType rows = NumberType::float32;
};

class MelKernels {
 public:
  static constexpr std::uint32_t frame_limit = 1U << 30;  // of a launch

  struct Launch {
    const void* samples = nullptr;  // aligned to 16 bytes
    SampleType sample_type = SampleType::int16;
    const std::uint32_t* offsets = nullptr;  // [capacity], those behind n_frames are not read
    // In device memory, at most `capacity`: a captured graph can be launched again with another.
    const std::uint32_t* n_frames = nullptr;
    std::uint32_t capacity = 0;  // frames that the launch is made for, at most `most_frames`
    void* rows = nullptr;        // [capacity, columns]; rows behind n_frames are not written
    void* work = nullptr;        // work_bytes(), aligned to 256 bytes
  };

  // Uploads the tables to the current device. `most_frames`: the largest capacity of a launch.
  // Throws CudaError, and std::invalid_argument when the options cannot be had.
  MelKernels(const FrontEnd& front_end, const KernelOptions& options, std::uint32_t most_frames);
  ~MelKernels();
  MelKernels(const MelKernels&) = delete;
  MelKernels& operator=(const MelKernels&) = delete;

  // The path that is taken; Path::automatic has become one of the others.
  Path path() const;
  // For a run's provenance: the path, the operands and, of cuFFT, its version and file.
  std::string description() const;
  // Device memory that a launch needs beside its batch and rows; launches that may overlap need
  // one each.
  std::size_t work_bytes() const;

  // Enqueues on `stream` (a cudaStream_t) and returns; nothing is synchronised or allocated, so it
  // can be captured into a graph. Work, batch and rows must stay until the device is done. Not for
  // several threads at once. Throws CudaError, and std::invalid_argument for a launch that does
  // not fit.
  void launch(void* stream, const Launch& launch);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace melflow::cuda
