// fftw.cpp - see fftw.h. FFTW's planner is not thread-safe, so one mutex guards every call but
// execution.

#include "mel/fftw.h"

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

}  // namespace

AlignedBuffer::AlignedBuffer(std::size_t size)
    : data_(
          static_cast<float*>(::operator new (size * sizeof(float), std::align_val_t{alignment}))),
      size_(size) {
  std::fill_n(data_, size_, 0.0F);
}

AlignedBuffer::AlignedBuffer(AlignedBuffer&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

AlignedBuffer& AlignedBuffer::operator=(AlignedBuffer&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

AlignedBuffer::~AlignedBuffer() { ::operator delete (data_, std::align_val_t{alignment}); }

FftPlan::FftPlan(int n) {
  // The planner looks at the alignment of these; with FFTW_ESTIMATE it does not touch them.
  AlignedBuffer in(static_cast<std::size_t>(n));
  AlignedBuffer out(static_cast<std::size_t>(n) + 2);
  const std::lock_guard lock(planner_mutex());
  plan_ = fftwf_plan_dft_r2c_1d(n, in.data(), reinterpret_cast<fftwf_complex*>(out.data()),
                                FFTW_ESTIMATE | FFTW_DESTROY_INPUT);
  if (plan_ == nullptr) {
    throw std::runtime_error("FFTW makes no plan for a transform of " + std::to_string(n));
  }
}

FftPlan::FftPlan(FftPlan&& other) noexcept : plan_(std::exchange(other.plan_, nullptr)) {}

FftPlan& FftPlan::operator=(FftPlan&& other) noexcept {
  std::swap(plan_, other.plan_);
  return *this;
}

FftPlan::~FftPlan() {
  if (plan_ == nullptr) return;
  const std::lock_guard lock(planner_mutex());
  fftwf_destroy_plan(plan_);
}

void FftPlan::execute(float* in, float* out) const {
  fftwf_execute_dft_r2c(plan_, in, reinterpret_cast<fftwf_complex*>(out));
}

}  // namespace melflow
