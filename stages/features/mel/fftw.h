// fftw.h - owners of FFTW's resources: aligned buffers and plans, in single and double precision.
//
// In:  n real samples.
// Out: n/2 + 1 complex bins, interleaved (re, im), not scaled.

#pragma once

#include <cstddef>
#include <type_traits>

struct fftwf_plan_s;
struct fftw_plan_s;

namespace melflow {

// Numbers, zeroed, move-only. All buffers have the same alignment, which FFTW's new-array execution
// needs. A plan for less aligned buffers would change the last bits.
template <class Real>
class AlignedArray {
 public:
  static constexpr std::size_t alignment = 64;  // [bytes], a cache line

  AlignedArray() = default;
  explicit AlignedArray(std::size_t size);  // [numbers]
  AlignedArray(AlignedArray&& other) noexcept;
  AlignedArray& operator=(AlignedArray&& other) noexcept;
  ~AlignedArray();

  Real* data() { return data_; }
  const Real* data() const { return data_; }
  std::size_t size() const { return size_; }

 private:
  Real* data_ = nullptr;
  std::size_t size_ = 0;
};

// A forward transform of n real samples. Planned by rule, never by timing (FFTW_ESTIMATE): timing
// would choose different algorithms, hence different last bits, from run to run. Move-only.
template <class Real>
class RealFft {
 public:
  RealFft() = default;
  explicit RealFft(int n);  // [samples]
  RealFft(RealFft&& other) noexcept;
  RealFft& operator=(RealFft&& other) noexcept;
  ~RealFft();

  // in [n], out [n/2 + 1] complex: distinct, both aligned to AlignedArray::alignment; `in` is
  // overwritten. Safe from many threads.
  void execute(Real* in, Real* out) const;

 private:
  std::conditional_t<std::is_same_v<Real, float>, fftwf_plan_s, fftw_plan_s>* plan_ = nullptr;
};

using AlignedBuffer = AlignedArray<float>;
using FftPlan = RealFft<float>;

extern template class AlignedArray<float>;
extern template class AlignedArray<double>;
extern template class RealFft<float>;
extern template class RealFft<double>;

}  // namespace melflow
