// resample: converts to another sample rate with libsoxr.
//
// In, out: Waveform. Blocks of a stream pass through one resampler, so that they join without a
// seam and yield the samples that the whole recording would.

#include <algorithm>

#include "pipeline/stage/registry.h"
#include "stages/audio/resampler.h"
#include "stages/facts.h"
#include "stages/items.h"
#include "stages/length.h"
#include "stages/passes_streams.h"

namespace melflow {
namespace {

struct ResampleState final : StageState {
  std::unique_ptr<Resampler> resampler;
};

class Resample final : public StreamTransform<Waveform, Waveform, ResampleState>,
                       public TellsLength,
                       public PassesStreams,
                       public Resamples {
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

  [[nodiscard]] std::string why_no_stream() const override { return {}; }
  [[nodiscard]] const ResampleOptions& resampling() const override { return options_; }
  [[nodiscard]] std::optional<RecordingLength> length_of(RecordingLength in) const override {
    if (in.sample_rate == options_.rate) return in;
    return RecordingLength{options_.rate, options_.samples_of(in.samples, in.sample_rate)};
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
    if (!state.resampler) {
      auto made = Resampler::make(options_, in->sample_rate);
      if (!made) return made.error();
      state.resampler = std::move(*made);
    }
    Resampler& resampler = *state.resampler;
    auto buffer = std::make_shared<Buffer>(
        context.run().pool.lease(resampler.room(in->samples.count) * sizeof(float)));
    const std::int64_t start = resampler.given();
    const auto made = resampler.put(in->samples, in->last, buffer->as<float>());
    if (!made) return made.error();
    auto result = std::make_shared<Waveform>();
    result->samples = {buffer, buffer->data(), static_cast<std::int64_t>(*made),
                       SampleType::float32};
    result->sample_rate = options_.rate;
    result->start = start;
    result->first = in->first;
    result->last = in->last;
    result->file = in->file;
    result->untimed_from = in->untimed_from;
    return std::shared_ptr<const Waveform>(std::move(result));
  }

 private:
  static constexpr double kChargedRate = 8000;             // [Hz]
  static constexpr double kLowestRate = kChargedRate / 8;  // [Hz] decode refuses slower files

  // int16 samples take two bytes each and become floats.
  std::size_t capacity(std::size_t input) const {
    const double ratio = std::max(1.0, options_.rate / kChargedRate);
    const std::size_t samples = input / 2;
    return static_cast<std::size_t>(static_cast<double>(samples) * ratio) +
           held_back(options_.rate / kLowestRate);
  }

  ResampleOptions options_;
};

const RegisterStage<Resample, ResampleOptions> register_resample{
    "resample", "Changes the sample rate (libsoxr).", true};

}  // namespace
}  // namespace melflow
