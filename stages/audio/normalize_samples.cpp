// normalize_samples: scales samples by the mean and deviation, the level or the peak of their
// recording, or of their window.
//
// In, out: Waveform, float32, of recordings that are held until they are complete; or Windows of a
//          grid, which then lie one behind the other, also where they overlapped, each with zeros
//          behind the end of its recording, which count for nothing.

#include <algorithm>
#include <cmath>
#include <optional>

#include <fmt/format.h>

#include "pipeline/stage/registry.h"
#include "stages/audio/heard_stretch.h"
#include "stages/audio/relaid_windows.h"
#include "stages/audio/sample_statistics.h"
#include "stages/audio/trim_silence_options.h"
#include "stages/facts.h"
#include "stages/items.h"
#include "stages/length.h"
#include "stages/other_names.h"
#include "stages/row_type.h"
#include "stages/sample_unit.h"
#include "stages/settings_in_use.h"

namespace melflow {

enum class SampleNorm { deviation, rms, peak };
template <>
struct EnumNames<SampleNorm> {
  static constexpr std::pair<const char*, SampleNorm> values[] = {
      {"deviation", SampleNorm::deviation}, {"rms", SampleNorm::rms}, {"peak", SampleNorm::peak}};
};

namespace {

// [Hz] Used where the rate is unknown, to bound the samples that are held.
constexpr double kUnknownRate = 48'000;

struct NormalizeSamplesOptions {
  SampleNorm by = SampleNorm::deviation;
  std::optional<Level> level;
  std::optional<double> eps;
  bool limit = false;
  Length hold = Length::of_seconds(40);

  void describe(Schema& s) {
    s.other_names(other_names::of_normalize_samples());
    s.other_values(other_names::values_of_normalize_samples());
    s.field("by", by,
            "deviation: (x - mean) / sqrt(variance + eps), of mean 0 and deviation 1; rms: x level "
            "/ (rms + eps), where rms is the square root of the mean square; peak: x level / (peak "
            "+ eps)");
    const auto has_level = [this] { return by != SampleNorm::deviation; };
    s.field(
         "level", level,
         "level that the recording or window gets; 0dB is an rms, or with by: peak a peak, of 1; "
         "required with by: rms, else 0dB")
        .range(-200, 0)
        .used_with("by: rms or by: peak", has_level);
    s.field("eps", eps,
            "what is added to the divisor as above; not set: 1e-7 for deviation, 1e-6 for rms, 0 "
            "for peak. Where the sum is 0, all is 0")
        .range(0, 1);
    s.field("limit", limit,
            "divides by peak + eps what then has a peak above 1, as VibeVoice does it")
        .used_with("by: rms", [this] { return by == SampleNorm::rms; });
    s.field("hold", hold,
            "longest recording, which is kept in memory until it is complete; longer ones fail. "
            "Windows of a segment node before this one have no such limit")
        .tuning();
  }
  [[nodiscard]] double eps_in_use() const {
    return eps.value_or(by == SampleNorm::deviation ? 1e-7 : by == SampleNorm::rms ? 1e-6 : 0.0);
  }
};

class NormalizeSamples final : public ItemStage, public PassesAny, public TellsLength {
 public:
  explicit NormalizeSamples(NormalizeSamplesOptions options)
      : ItemStage({.kind = StageKind::transform,
                   .in = kAnyPort,
                   .out = kAnyPort,
                   .order = BlockOrder::needed}),
        options_(options) {}

  static std::vector<PortType> ports() { return {port_type<Waveform>(), port_type<Windows>()}; }
  void set_port(PortType port) override { are_windows_ = port == port_type<Windows>(); }

  Properties plan(const Properties& given, const Requirements& required,
                  PlanCheck& check) override {
    if (options_.by == SampleNorm::rms && !options_.level)
      check.error("level", "is missing; write the level that recordings get, such as -25dB");
    Properties out = given;
    out.erase(property::kIsMarked);
    if (options_.by == SampleNorm::deviation) out.set(property::kSampleUnit, "deviations");
    if (!are_windows_) {
      const double rate =
          given.get_or(property::kSampleRate, required.get_or(requirement::kSampleRate, 0));
      most_held_ = options_.hold.at(rate > 0 ? rate : kUnknownRate);
      return out;
    }
    const auto grid = given.get(property::kWindowGrid);
    if (!grid) {
      check.error("from",
                  "the input is not cut into windows; take from a node before segment, for the "
                  "values of whole recordings, or give segment a length");
      return out;
    }
    in_rows_ = {given.get_or(property::kRowsPerSample, 0), given.get_or(property::kRowsExtra, 0)};
    grid_ = windows_behind_each_other(grid->length, out);
    return out;
  }

  [[nodiscard]] StageResources resources() const override {
    return {.size_option = are_windows_ ? "" : "hold"};
  }

  [[nodiscard]] std::optional<Value> settings() const override {
    NormalizeSamplesOptions own = options_;
    own.eps = options_.eps_in_use();
    if (!own.level) own.level = Level{};
    return settings_in_use(own);
  }

  [[nodiscard]] std::optional<RecordingLength> length_of(RecordingLength in) const override {
    if (!are_windows_ && in.samples > most_held_) return std::nullopt;
    return in;
  }

  // Upper bound: the samples held from earlier blocks, and all as floats.
  [[nodiscard]] std::size_t output_bound(const SourceInfo&, std::size_t input) const override {
    if (are_windows_) return bound_of_windows(in_rows_, grid_, input);
    return BufferPool::rounded(input + 2 * static_cast<std::size_t>(most_held_) * sizeof(float));
  }

  Result<Emission> run(const Item& item, std::unique_ptr<StageState>&,
                       ItemContext& context) override {
    if (are_windows_) return normalized(*payload_of<Windows>(item), context);
    const auto in = payload_of<Waveform>(item);
    std::unique_ptr<StageState>& state = context.state();
    if (!state) state = std::make_unique<HeldSamples>();
    KeptSamples& held = static_cast<HeldSamples&>(*state).samples;
    const HeardStretch all = held.joined(*in, context.run().pool);
    if (all.end() > most_held_)
      return ItemError::failed(fmt::format(
          "is longer than hold: more than {} samples ({:.6g} s), and its level is known "
          "at its end only; make hold longer, or put segment before this node, where "
          "windows are to be normalized each by itself",
          most_held_, static_cast<double>(most_held_) / in->sample_rate));
    if (!in->last) {
      held.keep(all, 0, context.run().pool);
      return Emission{};
    }
    state.reset();
    auto out = std::make_shared<Waveform>(*in);
    out->marked.clear();
    out->stored = false;
    out->start = 0;
    out->first = true;
    auto buffer = std::make_shared<Buffer>(
        context.run().pool.lease(static_cast<std::size_t>(all.samples.count) * sizeof(float)));
    if (auto error = normalize(all.samples, 0, buffer->as<float>())) return std::move(*error);
    out->samples = {buffer, buffer->data(), all.samples.count, SampleType::float32};
    return emission(std::shared_ptr<const Waveform>(std::move(out)));
  }

 private:
  static inline const PortType kAnyPort{typeid(NormalizeSamplesOptions), "waveform or windows"};

  struct HeldSamples final : StageState {
    KeptSamples samples;
  };

  // `at`: the number of the first sample, for messages.
  [[nodiscard]] std::optional<ItemError> normalize(const Samples& samples, std::int64_t at,
                                                   float* out) const {
    SampleStatistics of;
    of.add(samples);
    const double mean = of.mean(), variance = of.variance(), eps = options_.eps_in_use();
    if (!std::isfinite(mean + variance))
      return ItemError::failed(
          fmt::format("sample {} is not a finite number",
                      at + first_not_finite(reinterpret_cast<const float*>(samples.data),
                                            static_cast<std::size_t>(samples.count),
                                            NumberType::float32, NumberType::float32)));
    const double level = std::pow(10.0, options_.level.value_or(Level{}).db / 20);
    const auto over = [](double x, double divisor) { return divisor == 0 ? 0.0 : x / divisor; };
    const bool is_level = options_.by != SampleNorm::deviation;
    double scale = 0;
    if (options_.by == SampleNorm::deviation)
      scale = over(1, std::sqrt(variance + eps));
    else if (options_.by == SampleNorm::peak)
      scale = over(level, of.peak() + eps);
    else
      scale = over(level, std::sqrt(variance + mean * mean) + eps);
    if (const double peak = of.peak() * scale; limits() && peak > 1) scale /= peak + eps;
    scale_samples(samples, is_level ? 0 : mean, scale, out);
    return std::nullopt;
  }
  [[nodiscard]] bool limits() const { return options_.limit && options_.by == SampleNorm::rms; }

  [[nodiscard]] Result<Emission> normalized(const Windows& in, ItemContext& context) const {
    std::optional<ItemError> error;
    auto out = relaid_windows(in, grid_, SampleType::float32, context.run().pool,
                              [&](const Samples& window, std::int64_t start, std::byte* to) {
                                auto* const values = reinterpret_cast<float*>(to);
                                if (!error) error = normalize(window, start, values);
                                std::fill(values + window.count, values + grid_.length, 0.0F);
                              });
    if (error) return std::move(*error);
    return emission(std::move(out));
  }

  NormalizeSamplesOptions options_;
  bool are_windows_ = false;
  std::int64_t most_held_ = 0;
  RowsPerSample in_rows_;  // of the windows that come
  WindowGrid grid_;        // of those that leave
};

const RegisterStage<NormalizeSamples, NormalizeSamplesOptions> register_normalize_samples{
    "normalize_samples",
    "Scales recordings, or windows behind segment, to mean 0 and deviation 1, or to a level.",
    true};

}  // namespace
}  // namespace melflow
