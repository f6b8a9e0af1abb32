// real_fft_fftw.cpp - RealFft by FFTW. Planned by rule, never by timing (FFTW_ESTIMATE): timing
// would choose different algorithms, hence different last bits, from run to run. FFTW's planner is
// not thread-safe, so one mutex guards every call but execution.

#include <fftw3.h>

#include <mutex>
#include <stdexcept>
#include <string>
#include <type_traits>

#include "stages/features/mel/real_fft.h"

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

std::string_view transform_name() { return "fftw"; }

template <class Real>
struct RealFft<Real>::Plan {
  explicit Plan(int n) {
    // The planner checks their alignment; with FFTW_ESTIMATE it does not access them.
    AlignedArray<Real> in(static_cast<std::size_t>(n));
    AlignedArray<Real> out(static_cast<std::size_t>(n) + 2);
    const std::lock_guard lock(planner_mutex());
    plan = plan_of(n, in.data(), out.data(), FFTW_ESTIMATE | FFTW_DESTROY_INPUT);
    if (plan == nullptr)
      throw std::runtime_error("FFTW makes no plan for a transform of " + std::to_string(n));
  }
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;
  ~Plan() {
    const std::lock_guard lock(planner_mutex());
    destroy(plan);
  }

  std::conditional_t<std::is_same_v<Real, float>, fftwf_plan, fftw_plan> plan;
};

template <class Real>
RealFft<Real>::RealFft(int n) : plan_(std::make_shared<const Plan>(n)) {}

template <class Real>
AlignedArray<double> RealFft<Real>::make_work() const {
  return {};
}

template <class Real>
void RealFft<Real>::execute(Real* in, Real* out, AlignedArray<double>& /*work*/) const {
  execute_plan(plan_->plan, in, out);
}

template class RealFft<float>;
template class RealFft<double>;

}  // namespace melflow
