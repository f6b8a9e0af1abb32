// real_fft_own.cpp - RealFft by OwnFft, where the build has no FFTW.

#include "stages/features/mel/own_fft.h"
#include "stages/features/mel/real_fft.h"

namespace melflow {

std::string_view transform_name() { return "melflow"; }

template <class Real>
struct RealFft<Real>::Plan {
  explicit Plan(int n) : fft(n) {}

  OwnFft fft;
};

template <class Real>
RealFft<Real>::RealFft(int n) : plan_(std::make_shared<const Plan>(n)) {}

template <class Real>
AlignedArray<double> RealFft<Real>::make_work() const {
  return AlignedArray<double>(plan_->fft.work_size());
}

template <class Real>
void RealFft<Real>::execute(Real* in, Real* out, AlignedArray<double>& work) const {
  plan_->fft.execute(in, out, work.data());
}

template class RealFft<float>;
template class RealFft<double>;

}  // namespace melflow
