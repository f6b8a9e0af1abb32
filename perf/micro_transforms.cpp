// Measures transforms alone, FFTW's and melflow's own.
//
//   fft_complex/N     FFTW's complex one of N/2 points, from which N real samples' bins follow
//   fft_real/N        FFTW's real transform of N, planned by rule
//   fft_timed/N       the same, planned by timing (FFTW_MEASURE), which may differ from run to run
//   fft_own/N         OwnFft, in a build without FFTW: float samples and bins, double within
//   fft_*_double/N    the same two in double
#include <benchmark/benchmark.h>
#include <fftw3.h>

#include <algorithm>

#include "perf/micro.h"
#include "stages/features/mel/aligned_array.h"
#include "stages/features/mel/own_fft.h"
#include "stages/features/mel/real_fft.h"

namespace {

using namespace melflow;

template <class Real, class Execute>
void transform(benchmark::State& state, AlignedArray<Real>& in, AlignedArray<Real>& out,
               Execute execute) {
  const std::vector<Real> samples = micro::signal<Real>(static_cast<std::int64_t>(in.size()));
  for (auto _ : state) {
    // Restores the overwritten input, which would grow to infinity or fade to denormals.
    std::copy(samples.begin(), samples.end(), in.data());
    execute();
    benchmark::DoNotOptimize(out.data());
    benchmark::ClobberMemory();
  }
  micro::per(state, "s_per_frame", 1);
}

void fft_complex(benchmark::State& state) {
  const int n = static_cast<int>(state.range(0));
  AlignedBuffer in(static_cast<std::size_t>(n)), out(static_cast<std::size_t>(n));
  const fftwf_plan plan =
      fftwf_plan_dft_1d(n / 2, reinterpret_cast<fftwf_complex*>(in.data()),
                        reinterpret_cast<fftwf_complex*>(out.data()), FFTW_FORWARD, FFTW_ESTIMATE);
  transform(state, in, out, [plan] { fftwf_execute(plan); });
  fftwf_destroy_plan(plan);
}

template <class Real>
void fft_real(benchmark::State& state) {
  const int n = static_cast<int>(state.range(0));
  const RealFft<Real> fft(n);
  AlignedArray<Real> in(static_cast<std::size_t>(n)), out(static_cast<std::size_t>(n) + 2);
  AlignedArray<double> work = fft.make_work();
  transform(state, in, out, [&] { fft.execute(in.data(), out.data(), work); });
}

void fft_timed(benchmark::State& state) {
  const int n = static_cast<int>(state.range(0));
  AlignedBuffer in(static_cast<std::size_t>(n)), out(static_cast<std::size_t>(n) + 2);
  const fftwf_plan plan = fftwf_plan_dft_r2c_1d(
      n, in.data(), reinterpret_cast<fftwf_complex*>(out.data()), FFTW_MEASURE);
  transform(state, in, out, [plan] { fftwf_execute(plan); });
  fftwf_destroy_plan(plan);
}

template <class Real>
void fft_own(benchmark::State& state) {
  const int n = static_cast<int>(state.range(0));
  const OwnFft fft(n);
  AlignedArray<Real> in(static_cast<std::size_t>(n)), out(static_cast<std::size_t>(n) + 2);
  AlignedArray<double> work(fft.work_size());
  transform(state, in, out, [&] { fft.execute(in.data(), out.data(), work.data()); });
}

/// Lengths that the kernels have steps for.
void in_lanes(benchmark::internal::Benchmark* b) {
  for (const int n : {512, 400, 1024, 2048}) b->Arg(n);
}
/// Odd, prime, with a large prime factor, long.
void others(benchmark::internal::Benchmark* b) {
  for (const int n : {401, 441, 1103, 2205, 2206, 16411, 32768, 48000, 65536}) b->Arg(n);
}

}  // namespace

BENCHMARK(fft_complex)->Apply(in_lanes);
BENCHMARK(fft_real<float>)->Name("fft_real")->Apply(in_lanes)->Apply(others);
BENCHMARK(fft_timed)->Apply(in_lanes);
BENCHMARK(fft_own<float>)->Name("fft_own")->Apply(others);
BENCHMARK(fft_real<double>)->Name("fft_real_double")->Apply(in_lanes)->Apply(others);
BENCHMARK(fft_own<double>)->Name("fft_own_double")->Apply(in_lanes)->Apply(others);
