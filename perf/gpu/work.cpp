// What every measurement works on: front ends, packed files, memory.

#include <algorithm>
#include <cmath>

#include "bench.h"
#include "cuda/error.h"
#include "mel/mel_plan.h"

namespace melflow::bench {
namespace {

// Stages put every file at such a multiple (stages/cuda_batch.cpp).
constexpr std::size_t kFileAlignment = 8;

MelOptions front_end(int rate, int n_fft, int hop, int n_mels, MelOptions::Log log) {
  MelOptions o;
  o.sample_rate = rate;
  o.n_fft = n_fft;
  o.hop = hop;
  o.center = false;
  o.n_mels = n_mels;
  o.log = log;
  return o;
}

}  // namespace

Effort Effort::quick() {
  Effort e;
  e.repetitions = 5;
  e.set_bytes = 2U << 20;
  e.sets_over_cache = 1;
  e.copy_bytes = 8U << 20;
  e.copied_bytes = 32U << 20;
  e.batch_bytes = 2U << 20;
  e.batches = 12;
  e.streams = {1, 3};
  return e;
}

std::vector<Geometry> geometries() {
  using Log = MelOptions::Log;
  return {
      {"80 windows of 512 a file, 32 bands", front_end(4096, 512, 512, 32, Log::db), 40960, 80},
      {"two stages: 159 windows of 512 for 237 rows a file, 32 bands",
       front_end(4096, 512, 256, 32, Log::db), 40960, 237},
      {"speech: 10 s at 16 kHz, 400 every 160, 80 bands", front_end(16000, 400, 160, 80, Log::ln),
       160000, 998},
      {"music: 10 s at 22.05 kHz, 2048 every 512, 128 bands",
       front_end(22050, 2048, 512, 128, Log::db), 220500, 427},
  };
}

Pack::Pack(const Geometry& geometry, std::size_t most_bytes) {
  const MelPlan plan(geometry.options);
  const auto step = (static_cast<std::size_t>(geometry.samples) + kFileAlignment - 1) /
                    kFileAlignment * kFileAlignment;
  files = std::max<std::size_t>(1, most_bytes / (step * sizeof(std::int16_t)));
  samples.resize(files * step);
  std::uint64_t state = 42;
  double phase = 0;
  for (std::int16_t& s : samples) {
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    phase = phase > 6.283 ? phase - 6.283 : phase + 0.11;
    s = static_cast<std::int16_t>(6000 * std::sin(phase) + static_cast<double>(state >> 52) - 2048);
  }
  const std::int64_t frames = plan.frames(geometry.samples);
  for (std::size_t f = 0; f < files; ++f)
    for (std::int64_t t = 0; t < frames; ++t)
      offsets.push_back(static_cast<std::uint32_t>(f * step) +
                        static_cast<std::uint32_t>(plan.start(t)));
}

Memory::Memory(cuda::Gpu& gpu, Kind kind, std::size_t bytes) : gpu_(gpu), kind_(kind) {
  bytes = std::max<std::size_t>(bytes, 1);
  data_ = kind_ == Kind::device ? gpu_.allocate(bytes) : gpu_.allocate_pinned(bytes);
  if (data_ == nullptr)
    throw cuda::CudaError("no room for " + std::to_string(bytes >> 20) + " MiB of " +
                          (kind_ == Kind::device ? "device" : "page-locked") + " memory");
}

Memory::~Memory() {
  if (data_ == nullptr) return;
  kind_ == Kind::device ? gpu_.release(data_) : gpu_.release_pinned(data_);
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t n = values.size();
  return n % 2 == 1 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

}  // namespace melflow::bench
