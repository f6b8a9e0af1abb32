// fftw.cpp - see fftw.h. FFTW's planner is not thread-safe, so one mutex guards every call but
// execution.

#include "stages/features/mel/fftw.h"

#include <fftw3.h>

#include <algorithm>
#include <mutex>
#include <new>
#include <stdexcept>
#include <string>
#include <utility>

namespace melflow {
namespace {

std::mutex& planner_mutex() {
  static std::mutex mutex;
  return mutex;
}

fftwf_plan plan_of(int n, float* in, float* out, unsigned flags) {
  return fftwf_plan_dft_r2c_1d(n, in, reinterpret_cast<fftwf_complex*>(out), flags);
}
fftw_plan plan_of(int n, double* in, double* out, unsigned flags) {
  return fftw_plan_dft_r2c_1d(n, in, reinterpret_cast<fftw_complex*>(out), flags);
}
void destroy(fftwf_plan plan) { fftwf_destroy_plan(plan); }
void destroy(fftw_plan plan) { fftw_destroy_plan(plan); }
void execute_plan(fftwf_plan plan, float* in, float* out) {
  fftwf_execute_dft_r2c(plan, in, reinterpret_cast<fftwf_complex*>(out));
}
void execute_plan(fftw_plan plan, double* in, double* out) {
  fftw_execute_dft_r2c(plan, in, reinterpret_cast<fftw_complex*>(out));
}

}  // namespace

template <class Real>
AlignedArray<Real>::AlignedArray(std::size_t size)
    : data_(static_cast<Real*>(::operator new (size * sizeof(Real), std::align_val_t{alignment}))),
      size_(size) {
  std::fill_n(data_, size_, Real{0});
}

template <class Real>
AlignedArray<Real>::AlignedArray(AlignedArray&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

template <class Real>
AlignedArray<Real>& AlignedArray<Real>::operator=(AlignedArray&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

template <class Real>
AlignedArray<Real>::~AlignedArray() {
  ::operator delete (data_, std::align_val_t{alignment});
}

template <class Real>
RealFft<Real>::RealFft(int n) {
  // The planner checks their alignment; with FFTW_ESTIMATE it does not access them.
  AlignedArray<Real> in(static_cast<std::size_t>(n));
  AlignedArray<Real> out(static_cast<std::size_t>(n) + 2);
  const std::lock_guard lock(planner_mutex());
  plan_ = plan_of(n, in.data(), out.data(), FFTW_ESTIMATE | FFTW_DESTROY_INPUT);
  if (plan_ == nullptr) {
    throw std::runtime_error("FFTW makes no plan for a transform of " + std::to_string(n));
  }
}

template <class Real>
RealFft<Real>::RealFft(RealFft&& other) noexcept : plan_(std::exchange(other.plan_, nullptr)) {}

template <class Real>
RealFft<Real>& RealFft<Real>::operator=(RealFft&& other) noexcept {
  std::swap(plan_, other.plan_);
  return *this;
}

template <class Real>
RealFft<Real>::~RealFft() {
  if (plan_ == nullptr) return;
  const std::lock_guard lock(planner_mutex());
  destroy(plan_);
}

template <class Real>
void RealFft<Real>::execute(Real* in, Real* out) const {
  execute_plan(plan_, in, out);
}

template class AlignedArray<float>;
template class AlignedArray<double>;
template class RealFft<float>;
template class RealFft<double>;

}  // namespace melflow
