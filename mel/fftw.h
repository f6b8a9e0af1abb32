// fftw.h - owners for what FFTW needs: aligned buffers and single-precision plans.
//
// In:  n real samples.
// Out: n/2 + 1 complex bins, interleaved (re, im), not scaled.

#pragma once

#include <cstddef>

struct fftwf_plan_s;

namespace melflow {

// Floats, zeroed, move-only. All buffers have the same alignment: FFTW's new-array execution
// needs it, and a plan for less aligned buffers would give other last bits.
class AlignedBuffer {
 public:
  static constexpr std::size_t alignment = 64;  // [bytes], a cache line

  AlignedBuffer() = default;
  explicit AlignedBuffer(std::size_t size);  // [floats]
  AlignedBuffer(AlignedBuffer&& other) noexcept;
  AlignedBuffer& operator=(AlignedBuffer&& other) noexcept;
  ~AlignedBuffer();

  float* data() { return data_; }
  const float* data() const { return data_; }
  std::size_t size() const { return size_; }

 private:
  float* data_ = nullptr;
  std::size_t size_ = 0;
};

// A forward transform of n real samples, planned once by rule and never by timing (FFTW_ESTIMATE):
// timing picks different algorithms, hence different last bits, from run to run. Move-only.
class FftPlan {
 public:
  FftPlan() = default;
  explicit FftPlan(int n);
  FftPlan(FftPlan&& other) noexcept;
  FftPlan& operator=(FftPlan&& other) noexcept;
  ~FftPlan();

  // in and out: distinct, both AlignedBuffer::alignment-aligned; in is overwritten. Safe from many
  // threads.
  void execute(float* in, float* out) const;

 private:
  fftwf_plan_s* plan_ = nullptr;
};

}  // namespace melflow
