// Measures arithmetic: the whole mel kernel, and float16.
//
//   mel_SET/NAME    MelKernel from samples in cache to finished rows, with the instruction set SET
//
// The relevant figure is s_per_frame, or s_per_value.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "perf/micro.h"
#include "pipeline/base/float16.h"
#include "stages/features/mel/mel_kernel.h"
#include "stages/features/mel/mel_presets.h"

namespace {

using namespace melflow;
using micro::per;
using micro::signal;

/// The two-stage job's mel stage.
MelOptions leak() {
  MelOptions o;
  o.sample_rate = 4096;
  o.n_fft = 512;
  o.hop = 512;
  o.center = false;
  o.n_mels = 32;
  o.log = MelOptions::Log::db;
  return o;
}

MelOptions kaldi80() {
  MelOptions o = find_preset("kaldi")->options;
  o.n_mels = 80;
  return o;
}

/// config/pipelines/speech_16k_80mel.yaml
MelOptions speech() {
  MelOptions o;
  o.n_fft = 400;
  o.hop = 160;
  o.n_mels = 80;
  o.mel_scale = MelOptions::MelScale::slaney;
  o.mel_norm = MelOptions::MelNorm::slaney;
  o.log = MelOptions::Log::ln;
  return o;
}

MelOptions librosa2048() {
  MelOptions o;
  o.sample_rate = 22050;
  o.n_fft = 2048;
  o.n_mels = 128;
  o.log = MelOptions::Log::db;
  return o;
}

/// The same with a transform of 512, as in Kaldi and NeMo.
MelOptions speech512() {
  MelOptions o = speech();
  o.n_fft = 512;
  o.win_length = 400;
  return o;
}

MelOptions librosa1024() {
  MelOptions o = librosa2048();
  o.n_fft = 1024;
  return o;
}

template <class Sample>
void mel(benchmark::State& state, const MelOptions& options, std::string_view set) {
  constexpr std::int64_t n = 40960;
  const MelKernel kernel(std::make_shared<const MelPlan>(options), set);
  MelKernel::Scratch scratch = kernel.make_scratch();
  const std::vector<Sample> samples = signal<Sample>(n);
  const SignalView<Sample> view{samples.data(), 0, n, n};
  const std::int64_t frames = kernel.plan().frames(n);
  std::vector<float> rows(static_cast<std::size_t>(frames * kernel.plan().columns()));
  for (auto _ : state) {
    kernel.frames(view, 0, frames, rows.data(), scratch);
    benchmark::DoNotOptimize(rows.data());
    benchmark::ClobberMemory();
  }
  per(state, "s_per_frame", static_cast<double>(frames));
}

void add_kernel(const std::string& name, const MelOptions& options) {
  for (const std::string_view set : MelKernel::instruction_sets()) {
    const std::string full = "mel_" + std::string(set) + "/" + name;
    benchmark::RegisterBenchmark((full + "_int16").c_str(), mel<std::int16_t>, options, set);
    benchmark::RegisterBenchmark((full + "_float").c_str(), mel<float>, options, set);
  }
}

void float16(benchmark::State& state) {
  const std::vector<float> values = signal<float>(4096);
  std::vector<std::uint16_t> out(values.size());
  for (auto _ : state) {
    to_float16(values, out.data());
    benchmark::DoNotOptimize(out.data());
    benchmark::ClobberMemory();
  }
  per(state, "s_per_value", static_cast<double>(values.size()));
}

[[maybe_unused]] const bool has_kernels = [] {
  add_kernel("leak_512_32", leak());
  add_kernel("kaldi_512_80", kaldi80());
  add_kernel("librosa_400_80", speech());
  add_kernel("librosa_512_80", speech512());
  add_kernel("librosa_1024_128", librosa1024());
  add_kernel("librosa_2048_128", librosa2048());
  return true;
}();

}  // namespace

BENCHMARK(float16);
