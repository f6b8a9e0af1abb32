#include "stages/audio/resampler.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include <fmt/format.h>

#include "stages/other_names.h"

namespace melflow {
namespace {

// Limit of the ratio of the rates. No sound is sampled so fast, but a wrong header may claim it;
// not far above this, libsoxr never ends.
constexpr int kMostRatio = 8192;
// Samples passed to libsoxr at once. Few, because it buffers them and does not check whether its
// allocations succeed.
constexpr std::size_t kPiece = 4096;

}  // namespace

void ResampleOptions::describe(Schema& s) {
  s.other_names(other_names::of_resample());
  s.other_values(other_names::values_of_resample());
  s.field("rate", rate, "sample rate to which every recording is converted [Hz]")
      .range(100, 1'000'000);
  s.field("quality", quality,
          "quality of libsoxr's filter; higher: sharper; high is what librosa uses (soxr_hq). A "
          "lower one is not always faster");
  s.field("length", length,
          "number of samples that n samples become; round: n rate / old rate, to the nearest; "
          "ceil: rounded up (torchaudio); librosa: as librosa.resample, now and then one more "
          "than ceil. Where libsoxr gives one less, a 0 is appended");
}

// With n = count * rate / from:
//   round: n to the nearest number, the length that libsoxr yields
//   ceil: n rounded up (torchaudio.functional.resample)
//   librosa: count * (rate / from) rounded up in double precision, which can exceed a whole n a
//     little (librosa.resample with fix=True, which appends zeros)
std::int64_t ResampleOptions::samples_of(std::int64_t count, int from) const {
  if (length == ResampleLength::round)
    return std::llround(static_cast<double>(count) * rate / from);
  if (length == ResampleLength::librosa)
    return static_cast<std::int64_t>(
        std::ceil(static_cast<double>(count) * (static_cast<double>(rate) / from)));
  const std::int64_t whole = count / from, rest = count % from;
  return whole * rate + (rest * rate + from - 1) / from;
}

// A resampler is made for every recording: soxr_clear() designs the filter again, so that reuse
// saves nothing (measured).
Result<std::unique_ptr<Resampler>> Resampler::make(const ResampleOptions& options, int from) {
  const int to = options.rate;
  if (from / to >= kMostRatio)
    return ItemError::failed(
        fmt::format("is sampled at {} Hz: too high to be resampled to {} Hz, the most is {} Hz",
                    from, to, std::int64_t{kMostRatio} * to - 1));
  constexpr std::array recipes{SOXR_QQ, SOXR_LQ, SOXR_MQ, SOXR_HQ, SOXR_VHQ};
  const soxr_quality_spec_t quality =
      soxr_quality_spec(recipes[static_cast<std::size_t>(options.quality)], 0);
  const soxr_io_spec_t io = soxr_io_spec(SOXR_FLOAT32_I, SOXR_FLOAT32_I);
  const soxr_runtime_spec_t runtime = soxr_runtime_spec(1);
  soxr_error_t error = nullptr;
  std::unique_ptr<soxr, Deleter> made(soxr_create(from, to, 1, &error, &io, &quality, &runtime));
  if (!made) return ItemError::failed(fmt::format("libsoxr: {}", error));
  return std::unique_ptr<Resampler>(new Resampler(options, from, std::move(made)));
}

Result<std::int64_t> Resampler::most_lag(const ResampleOptions& options, int from) {
  constexpr std::int64_t kStep = 16, kEnough = 1 << 15;
  auto made = make(options, from);
  if (!made) return std::move(made.error());
  const std::vector<float> silence(kStep);
  std::vector<float> out((*made)->room(kStep));
  const Samples samples{nullptr, reinterpret_cast<const std::byte*>(silence.data()), kStep,
                        SampleType::float32};
  const double ratio = static_cast<double>(from) / options.rate;
  std::int64_t lag = 0;
  for (std::int64_t taken = 0; taken < kEnough; taken += kStep) {
    const double there = static_cast<double>((*made)->given()) * ratio;
    lag = std::max(lag, taken + kStep - static_cast<std::int64_t>(there));
    if (auto put = (*made)->put(samples, false, out.data()); !put) return std::move(put.error());
  }
  return lag;
}

std::size_t Resampler::room(std::int64_t count) const {
  const double ratio = static_cast<double>(options_.rate) / from_;
  return static_cast<std::size_t>(static_cast<double>(count) * ratio) + held_back(ratio);
}

Result<std::size_t> Resampler::put(const Samples& samples, bool is_last, float* out) {
  const std::size_t room = this->room(samples.count);
  std::size_t have = 0;
  auto rest = static_cast<std::size_t>(samples.count);
  const std::byte* from = samples.data;
  // libsoxr 0.1.3 converts int16 wrongly at some ratios (44.1 to 24 kHz: by up to 4e-3 of full
  // scale at quality high, 5e-2 at low), but not the same samples as floats.
  std::array<float, kPiece> floats;
  while (true) {
    std::size_t used = 0, made = 0;
    const bool flush = rest == 0;
    if (flush && !is_last) break;
    const std::size_t piece = std::min(rest, kPiece);
    const void* given = flush ? nullptr : from;
    if (!flush && samples.type == SampleType::int16) {
      to_float(from, piece, NumberType::int16, floats.data());
      given = floats.data();
    }
    const soxr_error_t error =
        soxr_process(soxr_.get(), given, piece, &used, out + have, room - have, &made);
    if (error != nullptr) return ItemError::failed(fmt::format("libsoxr: {}", error));
    from += used * size_of(samples.type);
    rest -= used;
    have += made;
    if (flush && made == 0) break;
    if (have == room && (made > 0 || rest > 0))
      return ItemError::failed("libsoxr gave more samples than it should have");
  }
  taken_ += samples.count;
  given_ += static_cast<std::int64_t>(have);
  if (is_last && options_.length != ResampleLength::round)
    for (const std::int64_t all = options_.samples_of(taken_, from_); given_ < all && have < room;
         ++given_)
      out[have++] = 0.0F;
  return have;
}

}  // namespace melflow
