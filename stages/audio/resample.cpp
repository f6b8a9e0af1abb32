// resample: converts to another sample rate with libsoxr.
//
// In, out: Waveform. Blocks of a stream pass through one resampler, so that they join without a
// seam and yield the samples that the whole recording would.

#include <soxr.h>

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "pipeline/stage/registry.h"
#include "stages/facts.h"
#include "stages/items.h"
#include "stages/length.h"
#include "stages/other_names.h"
#include "stages/sample_rate.h"

namespace melflow {

enum class ResampleQuality { quick, low, medium, high, very_high };
template <>
struct EnumNames<ResampleQuality> {
  static constexpr std::pair<const char*, ResampleQuality> values[] = {
      {"quick", ResampleQuality::quick},
      {"low", ResampleQuality::low},
      {"medium", ResampleQuality::medium},
      {"high", ResampleQuality::high},
      {"very_high", ResampleQuality::very_high}};
};

enum class ResampleLength { round, ceil, librosa };
template <>
struct EnumNames<ResampleLength> {
  static constexpr std::pair<const char*, ResampleLength> values[] = {
      {"round", ResampleLength::round},
      {"ceil", ResampleLength::ceil},
      {"librosa", ResampleLength::librosa}};
};

namespace {

struct ResampleOptions {
  SampleRate rate = 16000;
  ResampleQuality quality = ResampleQuality::high;
  ResampleLength length = ResampleLength::round;

  void describe(Schema& s) {
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
};

struct SoxrDeleter {
  void operator()(soxr* s) const { soxr_delete(s); }
};
using Soxr = std::unique_ptr<soxr, SoxrDeleter>;

struct ResampleState final : StageState {
  Soxr soxr;
  std::int64_t taken = 0;  // samples so far, at the old rate
  std::int64_t given = 0;  // samples so far, at the new rate
};

// The number of samples of a recording of `count` at the new rate, with n = count * to / from:
//   round: n to the nearest number, the length that libsoxr yields; returns 0
//   ceil: n rounded up (torchaudio.functional.resample)
//   librosa: count * (to / from) rounded up in double precision, which can exceed a whole n a
//     little (librosa.resample with fix=True, which appends zeros)
std::int64_t samples_of(ResampleLength length, std::int64_t count, int from, int to) {
  if (length == ResampleLength::librosa)
    return static_cast<std::int64_t>(
        std::ceil(static_cast<double>(count) * (static_cast<double>(to) / from)));
  const std::int64_t whole = count / from, rest = count % from;
  return length == ResampleLength::ceil ? whole * to + (rest * to + from - 1) / from : 0;
}

// Bounds the samples that libsoxr may hold back from earlier blocks and yield later. Measured for
// all qualities: at most 1.3e3 of the input's, and below 2^15 when the rate decreases.
std::size_t held_back(double ratio) { return (1 << 15) + static_cast<std::size_t>(1024 * ratio); }

class Resample final : public StreamTransform<Waveform, Waveform, ResampleState>,
                       public TellsLength {
 public:
  explicit Resample(ResampleOptions options) : options_(options) {}

  // Omits a length of `round`, which older outputs, without this option, have.
  [[nodiscard]] std::optional<Value> settings() const override {
    ResampleOptions own = options_;
    Schema s;
    own.describe(s);
    Value out = Value::map({});
    const Value all = s.echo();
    for (const Value::Entry& e : all.entries())
      if (e.key != "length" || own.length != ResampleLength::round) out.set(e.key, e.value);
    return out;
  }

  [[nodiscard]] Requirements require(const Requirements& below) const override {
    Requirements above = below;
    above.erase(requirement::kSampleRate);
    above.erase(requirement::kBlockMultiple);
    above.set(requirement::kLowestRate, kChargedRate);
    return above;
  }

  Properties plan(const Properties& given, const Requirements&, PlanCheck&) override {
    Properties out = given;
    out.set(property::kSampleRate, options_.rate);
    out.erase(property::kSamplesOfFile);
    out.erase(property::kIsMarked);
    return out;
  }

  [[nodiscard]] std::optional<RecordingLength> length_of(RecordingLength in) const override {
    if (in.sample_rate == options_.rate) return in;
    const std::int64_t all =
        options_.length == ResampleLength::round
            ? std::llround(static_cast<double>(in.samples) * options_.rate / in.sample_rate)
            : samples_of(options_.length, in.samples, in.sample_rate, options_.rate);
    return RecordingLength{options_.rate, all};
  }

  // A file's rate is not known before it is opened. Blocks are charged as if it were kChargedRate;
  // decode shortens those of slower files in proportion.
  [[nodiscard]] std::size_t output_bound(const SourceInfo&, std::size_t input) const override {
    return BufferPool::rounded(capacity(input) * sizeof(float));
  }

  Result<std::shared_ptr<const Waveform>> process_block(std::shared_ptr<const Waveform> in,
                                                        ResampleState& state,
                                                        ItemContext& context) const override {
    if (in->sample_rate == options_.rate) return in;
    if (!state.soxr) {
      if (in->sample_rate / options_.rate >= kMostRatio)
        return ItemError::failed(fmt::format(
            "is sampled at {} Hz: too high to be resampled to {} Hz, the most is {} Hz",
            in->sample_rate, options_.rate.hz, std::int64_t{kMostRatio} * options_.rate.hz - 1));
      auto made = resampler(in->sample_rate);
      if (!made) return made.error();
      state.soxr = std::move(*made);
    }
    const double ratio = static_cast<double>(options_.rate) / in->sample_rate;
    const auto room =
        static_cast<std::size_t>(static_cast<double>(in->samples.count) * ratio) + held_back(ratio);
    auto buffer = std::make_shared<Buffer>(context.run().pool.lease(room * sizeof(float)));
    auto* out = buffer->as<float>();
    std::size_t have = 0;
    auto rest = static_cast<std::size_t>(in->samples.count);
    const std::byte* from = in->samples.data;
    // libsoxr 0.1.3 converts int16 wrongly at some ratios (44.1 to 24 kHz: by up to 4e-3 of full
    // scale at quality high, 5e-2 at low), but not the same samples as floats.
    std::array<float, kPiece> floats;
    while (true) {
      std::size_t used = 0, made = 0;
      const bool flush = rest == 0;
      if (flush && !in->last) break;
      const std::size_t piece = std::min(rest, kPiece);
      const void* given = flush ? nullptr : from;
      if (!flush && in->samples.type == SampleType::int16) {
        to_float(from, piece, NumberType::int16, floats.data());
        given = floats.data();
      }
      const soxr_error_t error =
          soxr_process(state.soxr.get(), given, piece, &used, out + have, room - have, &made);
      if (error != nullptr) return ItemError::failed(fmt::format("libsoxr: {}", error));
      from += used * size_of(in->samples.type);
      rest -= used;
      have += made;
      if (flush && made == 0) break;
      if (have == room && (made > 0 || rest > 0))
        return ItemError::failed("libsoxr gave more samples than it should have");
    }
    state.taken += in->samples.count;
    if (in->last) {
      const std::int64_t all =
          samples_of(options_.length, state.taken, in->sample_rate, options_.rate);
      for (; state.given + static_cast<std::int64_t>(have) < all && have < room; ++have)
        out[have] = 0.0F;
    }
    auto result = std::make_shared<Waveform>();
    result->samples = {buffer, buffer->data(), static_cast<std::int64_t>(have),
                       SampleType::float32};
    result->sample_rate = options_.rate;
    result->start = state.given;
    result->first = in->first;
    result->last = in->last;
    result->file = in->file;
    result->untimed_from = in->untimed_from;
    state.given += static_cast<std::int64_t>(have);
    return std::shared_ptr<const Waveform>(std::move(result));
  }

 private:
  static constexpr double kChargedRate = 8000;             // [Hz]
  static constexpr double kLowestRate = kChargedRate / 8;  // [Hz] decode refuses slower files
  // Limit of the ratio of the rates. No sound is sampled so fast, but a wrong header may claim it;
  // not far above this, libsoxr never ends.
  static constexpr int kMostRatio = 8192;
  // Samples passed to libsoxr at once. Few, because it buffers them and does not check whether its
  // allocations succeed.
  static constexpr std::size_t kPiece = 4096;

  // int16 samples take two bytes each and become floats.
  std::size_t capacity(std::size_t input) const {
    const double ratio = std::max(1.0, options_.rate / kChargedRate);
    const std::size_t samples = input / 2;
    return static_cast<std::size_t>(static_cast<double>(samples) * ratio) +
           held_back(options_.rate / kLowestRate);
  }

  // Makes a resampler for every stream: soxr_clear() designs the filter again, so that reuse saves
  // nothing (measured).
  Result<Soxr> resampler(int from) const {
    constexpr std::array recipes{SOXR_QQ, SOXR_LQ, SOXR_MQ, SOXR_HQ, SOXR_VHQ};
    const soxr_quality_spec_t quality =
        soxr_quality_spec(recipes[static_cast<std::size_t>(options_.quality)], 0);
    const soxr_io_spec_t io = soxr_io_spec(SOXR_FLOAT32_I, SOXR_FLOAT32_I);
    const soxr_runtime_spec_t runtime = soxr_runtime_spec(1);
    soxr_error_t error = nullptr;
    Soxr made(soxr_create(from, options_.rate, 1, &error, &io, &quality, &runtime));
    if (!made) return ItemError::failed(fmt::format("libsoxr: {}", error));
    return made;
  }

  ResampleOptions options_;
};

const RegisterStage<Resample, ResampleOptions> register_resample{
    "resample", "Changes the sample rate (libsoxr).", true};

}  // namespace
}  // namespace melflow
