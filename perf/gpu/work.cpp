// The data of all measurements: front ends, packed files, memory.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <stdexcept>

#include "bench.h"
#include "cuda/error.h"
#include "cuda/slot_pool.h"
#include "stages/features/mel/mel_plan.h"

namespace melflow::bench {
namespace {

// Stages align every file to such a multiple (stages/cuda_batch.cpp).
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

Report::Report(const std::string& path) : path_(path) {
  if (!path.empty()) file_.open(path, std::ios::binary | std::ios::app);
  if (!file_) throw std::runtime_error(path + ": cannot be written");
}

void Report::text(const std::string& markdown) const {
  if (std::fputs(markdown.c_str(), stdout) < 0 || std::fflush(stdout) != 0)
    throw std::runtime_error("standard output cannot be written");
}

void Report::figures(const char* kind, const Json& figures) {
  if (path_.empty()) return;
  Json line{{"kind", kind}};
  line.update(figures);
  if (!(file_ << line.dump() << '\n').flush())
    throw std::runtime_error(path_ + ": cannot be written");
}

std::string with_commas(double value) {
  std::string digits = fmt::format("{:.0f}", value);
  for (std::size_t at = digits.size(); at > 3;) digits.insert(at -= 3, ",");
  return digits;
}

Effort Effort::quick() {
  Effort e;
  e.repetitions = 3;
  e.set_bytes = 512U << 10;
  e.sets_over_cache = 1;
  e.copy_bytes = 8U << 20;
  e.copied_bytes = 32U << 20;
  e.batch_bytes = 1U << 20;
  e.small_batch_bytes = 256U << 10;
  e.batches = 4;
  e.slots = {1, cuda::SlotSettings{}.slots};
  return e;
}

std::vector<Geometry> geometries() {
  using Log = MelOptions::Log;
  return {
      {"builder: 80 windows of 512 a file, 32 bands", front_end(4096, 512, 512, 32, Log::db), 40960,
       80},
      {"two-stage: 159 windows of 512 for 237 rows a file, 32 bands",
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
