// Measures how many cores other programs leave free, the mel kernel from samples in the cache to
// finished rows, and copying memory.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <memory>

#include <fmt/format.h>

#include "apps/bench/measurements.h"
#include "pipeline/base/cpu.h"
#include "pipeline/base/process_usage.h"
#include "stages/features/mel/mel_kernel.h"

namespace melflow {
namespace {

constexpr std::int64_t kSamples = 40960;
constexpr std::size_t kCopied = 64 << 20;  // [bytes]: more than most caches hold
constexpr std::size_t kPiece = 1 << 20;    // [bytes] copied at a time

/// The mel options of the README's first pipeline.
MelOptions speech() {
  MelOptions out;
  out.sample_rate = 16000;
  out.n_fft = 512;
  out.hop = 160;
  out.n_mels = 80;
  out.log = MelOptions::Log::db;
  return out;
}

double frames_per_second(int threads, const Slice& slice, const MelKernel& kernel,
                         const std::vector<std::int16_t>& samples) {
  return rate_on(threads, slice, [&]() -> Work {
    struct Own {
      MelKernel::Scratch scratch;
      std::vector<float> rows;
    };
    const std::int64_t frames = kernel.plan().frames(kSamples);
    auto own = std::make_shared<Own>();
    own->scratch = kernel.make_scratch();
    own->rows.resize(static_cast<std::size_t>(frames * kernel.plan().columns()));
    return [own, frames, &kernel, &samples] {
      kernel.frames(SignalView<std::int16_t>{samples.data(), 0, kSamples, kSamples}, 0, frames,
                    own->rows.data(), own->scratch);
      return static_cast<double>(frames);
    };
  });
}

}  // namespace

std::vector<std::int16_t> tones_and_noise(std::int64_t count) {
  std::vector<std::int16_t> out(static_cast<std::size_t>(count));
  std::uint32_t draw = 1;
  for (std::size_t i = 0; i < out.size(); ++i) {
    draw = draw * 1664525U + 1013904223U;  // Numerical Recipes' generator
    const auto at = static_cast<double>(i);
    const double tones = 6000 * std::sin(0.05 * at) + 2000 * std::sin(0.31 * at);
    out[i] = static_cast<std::int16_t>(tones + static_cast<double>(draw >> 21U));
  }
  return out;
}

std::vector<Measurement> computing() {
  const int cores = available_cpus();
  const auto kernel = std::make_shared<const MelKernel>(std::make_shared<const MelPlan>(speech()));
  const auto samples = std::make_shared<const std::vector<std::int16_t>>(tones_and_noise(kSamples));
  std::vector<Measurement> out;
  // Work that never waits gets every core, unless other programs take some.
  out.push_back(
      {"cores that are free, of " + std::to_string(cores), "cores", [=](const Slice& slice) {
         const auto began = std::chrono::steady_clock::now();
         const double before = process_usage().cpu_seconds();
         (void)frames_per_second(cores, slice, *kernel, *samples);
         return (process_usage().cpu_seconds() - before) / Slice::seconds_since(began);
       }});
  const auto add_mel = [&](int threads) {
    out.push_back({"mel, " + cores_text(threads), "frames/s", [=](const Slice& slice) {
                     return frames_per_second(threads, slice, *kernel, *samples);
                   }});
  };
  add_mel(1);
  if (cores > 1) add_mel(cores);

  const auto from = std::make_shared<const std::vector<char>>(kCopied, 'a');
  const auto to = std::make_shared<std::vector<char>>(kCopied, 'b');
  const auto next = std::make_shared<std::atomic<std::size_t>>(0);
  out.push_back({"copy memory, " + cores_text(cores), "GB/s", [=](const Slice& slice) {
                   return rate_on(cores, slice, [&]() -> Work {
                     return [&] {
                       const std::size_t at = next->fetch_add(kPiece) % kCopied;
                       std::memcpy(to->data() + at, from->data() + at, kPiece);
                       return kPiece / 1e9;
                     };
                   });
                 }});
  return out;
}

}  // namespace melflow
