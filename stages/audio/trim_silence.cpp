// trim_silence: removes the silence before the first and after the last sound of a recording.
//
// In, out: Waveform. Samples are counted from the first one that remains. The result depends on the
// recording alone, not on its blocks.

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "pipeline/stage/registry.h"
#include "stages/audio/heard_stretch.h"
#include "stages/audio/trim_silence_options.h"
#include "stages/facts.h"
#include "stages/items.h"

namespace melflow {
namespace {

// [Hz] Used where the rate is unknown, to bound the samples that are held: a longer `hold` of a
// recording of a higher rate would take more memory than was reserved.
constexpr double kAssumedRate = 48'000;
constexpr double kLeastLevel = 1e-10;  // mean square; librosa's amin of 1e-5

// Lengths in samples of one recording.
struct TrimLengths : LevelFrames {
  std::int64_t keep = 0, hold = 0;
};

struct TrimState final : StageState {
  KeptSamples kept;             // samples not emitted yet or needed by later frames
  std::int64_t next_frame = 0;  // to be examined
  std::int64_t begin = -1;      // the first sample to emit; -1: no sound yet
  std::int64_t sound_end = 0;   // end of the last sound, with the samples to keep after it
  std::int64_t given_to = 0;    // samples before it were emitted, or dropped at the start
};

class TrimSilence final : public StreamTransform<Waveform, Waveform, TrimState> {
 public:
  explicit TrimSilence(TrimSilenceOptions options) : options_(options) {}

  [[nodiscard]] Requirements require(const Requirements& below) const override {
    Requirements above = below;
    above.erase(requirement::kBlockMultiple);  // the output's samples have other positions
    return above;
  }

  Properties plan(const Properties& given, const Requirements& required,
                  PlanCheck& check) override {
    if (!options_.threshold && !options_.top_db)
      check.error("",
                  "neither threshold nor top_db is set; set threshold: -40dB (a level) or top_db: "
                  "60 (below the loudest frame)");
    if (options_.threshold && options_.top_db)
      check.error("top_db", "threshold and top_db are both given; remove one");
    if (given.get_or(property::kHasUtterances, false))
      check.error("",
                  "would move the places of utterances, which are those in the recordings as "
                  "they are; remove it");
    given_rate_ = given.get_or(property::kSampleRate, 0);
    rate_ = given_rate_ > 0 ? given_rate_ : required.get_or(requirement::kSampleRate, 0);
    const TrimLengths l = lengths(rate_ > 0 ? rate_ : kAssumedRate);
    if (l.frame < 1) check.error("frame", "a frame of no sample");
    if (l.hop < 1) check.error("hop", "a hop of no sample");
    most_held_ = l.hold;
    if (is_too_long(l))
      check.error(
          "hold",
          fmt::format("is {} samples, but must be at least frame, hop and keep together ({})",
                      l.hold, l.frame + l.hop + l.keep));
    Properties out = given;
    out.erase(property::kSamplesOfFile);
    out.erase(property::kIsMarked);
    return out;
  }

  [[nodiscard]] StageResources resources() const override { return {.size_option = "hold"}; }

  // Writes lengths in samples if the rate is known.
  [[nodiscard]] std::optional<Value> settings() const override { return settings_at(rate_); }
  [[nodiscard]] std::optional<Value> settings_alone() const override {
    return settings_at(given_rate_);
  }

  // Upper bound: the samples held back from earlier blocks plus those of this block.
  [[nodiscard]] std::size_t output_bound(const SourceInfo&, std::size_t input) const override {
    return BufferPool::rounded(input + 2 * static_cast<std::size_t>(most_held_) * sizeof(float));
  }

  [[nodiscard]] std::vector<std::pair<std::string, Value>> summary() const override {
    const double seconds = static_cast<double>(microseconds_.load()) * 1e-6;
    return {{"trimmed_files", Value::scalar(std::to_string(trimmed_.load()))},
            {"trimmed_seconds", Value::scalar(fmt::format("{:.3f}", seconds))}};
  }

  Result<std::shared_ptr<const Waveform>> process_block(std::shared_ptr<const Waveform> in,
                                                        TrimState& state,
                                                        ItemContext& context) const override {
    TrimLengths l = lengths(in->sample_rate);
    l.hold = std::min(l.hold, most_held_);
    if (l.frame < 1 || l.hop < 1)
      return ItemError::failed(
          fmt::format("is sampled at {} Hz, where a {} is less than one sample", in->sample_rate,
                      l.frame < 1 ? "frame" : "hop"));
    if (is_too_long(l))
      return ItemError::failed(
          fmt::format("is sampled at {} Hz, where frame, hop and keep are longer than the {} "
                      "samples that may be held; put a resample stage before this node",
                      in->sample_rate, l.hold));
    const HeardStretch all = state.kept.joined(*in, context.run().pool);
    const std::int64_t to = options_.top_db ? end_by_peak(*in, all, l, state)
                                            : end_by_level(*in, all, l, state, context);
    if (to < 0)
      return ItemError::failed(
          fmt::format("is longer than hold: more than {} samples, and top_db needs the whole "
                      "recording; make hold longer, or use threshold",
                      l.hold));
    auto out = std::make_shared<Waveform>(*in);
    const std::int64_t from = std::clamp(state.given_to, all.begin, all.end());
    out->samples = all.part(from, std::max(from, to));
    out->start = state.begin < 0 ? 0 : from - state.begin;
    out->stored = false;
    state.given_to = std::max(from, to);
    if (in->last && (state.begin < 0 || state.given_to <= state.begin))
      return ItemError::skipped(fmt::format("is silent: nothing of it is left ({})", rule()));
    if (in->last)
      note(state.begin + all.end() - state.given_to, in->sample_rate);
    else
      keep(all, l, state, context);
    return std::shared_ptr<const Waveform>(std::move(out));
  }

 private:
  [[nodiscard]] Value settings_at(double rate) const {
    TrimSilenceOptions own = options_;
    if (rate > 0)
      for (Length* l : {&own.frame, &own.hop, &own.keep, &own.hold}) *l = Length(l->at(rate));
    Schema s;
    own.describe(s);
    return s.echo(false);
  }

  [[nodiscard]] TrimLengths lengths(double rate) const {
    return {{options_.frame.at(rate), options_.hop.at(rate)},
            options_.keep.at(rate),
            options_.hold.at(rate)};
  }
  [[nodiscard]] static bool is_too_long(const TrimLengths& l) {
    return l.frame + l.hop + l.keep > l.hold;
  }
  [[nodiscard]] std::string rule() const {
    return options_.threshold ? "threshold " + OptionType<Level>::echo(*options_.threshold).text()
                              : "top_db " + number_text(*options_.top_db);
  }

  // For an absolute level: returns the sample up to which all are known to remain.
  std::int64_t end_by_level(const Waveform& in, const HeardStretch& all, const TrimLengths& l,
                            TrimState& state, ItemContext& context) const {
    const double limit = std::pow(10.0, options_.threshold.value_or(Level{}).db / 10);
    const std::int64_t frames = in.last ? l.count(all.end()) : 0;
    while (in.last ? state.next_frame < frames : l.begin(state.next_frame) + l.frame <= all.end()) {
      if (all.mean_square(l, state.next_frame) > limit) sound_at(state.next_frame, l, state);
      ++state.next_frame;
    }
    if (state.begin < 0) return all.begin;
    const std::int64_t sound_end = std::min(all.end(), state.sound_end);
    const std::int64_t too_old = all.end() - l.hold;
    if (in.last && too_old > sound_end)
      context.warn(fmt::format("of {:.3f} s of silence at the end only {:.3f} s are cut off (hold)",
                               static_cast<double>(all.end() - sound_end) / in.sample_rate,
                               static_cast<double>(l.hold) / in.sample_rate));
    return std::max(sound_end, too_old);
  }

  // For a level relative to the loudest frame: emits nothing before all samples are there; returns
  // -1 if there are too many.
  std::int64_t end_by_peak(const Waveform& in, const HeardStretch& all, const TrimLengths& l,
                           TrimState& state) const {
    if (all.end() > l.hold) return -1;
    if (!in.last) return all.begin;
    std::vector<double> levels(static_cast<std::size_t>(l.count(all.end())));
    for (std::size_t i = 0; i < levels.size(); ++i)
      levels[i] = std::max(kLeastLevel, all.mean_square(l, static_cast<std::int64_t>(i)));
    const double loudest =
        levels.empty() ? kLeastLevel : *std::max_element(levels.begin(), levels.end());
    const double limit = loudest * std::pow(10.0, -*options_.top_db / 10);
    for (std::size_t i = 0; i < levels.size(); ++i)
      if (levels[i] > limit) sound_at(static_cast<std::int64_t>(i), l, state);
    return std::min(all.end(), state.sound_end);
  }

  static void sound_at(std::int64_t frame, const TrimLengths& l, TrimState& state) {
    if (state.begin < 0)
      state.begin = state.given_to = std::max<std::int64_t>(0, frame * l.hop - l.keep);
    state.sound_end = (frame + 1) * l.hop + l.keep;
  }

  void keep(const HeardStretch& all, const TrimLengths& l, TrimState& state,
            ItemContext& context) const {
    std::int64_t from = options_.top_db ? 0 : l.begin(state.next_frame);
    from = std::min(from, state.begin >= 0 ? state.given_to : state.next_frame * l.hop - l.keep);
    state.kept.keep(all, from, context.run().pool);
  }

  void note(std::int64_t trimmed, int rate) const {
    if (trimmed <= 0 || rate <= 0) return;
    trimmed_.fetch_add(1, std::memory_order_relaxed);
    microseconds_.fetch_add(trimmed / rate * 1'000'000 + trimmed % rate * 1'000'000 / rate,
                            std::memory_order_relaxed);
  }

  TrimSilenceOptions options_;
  double given_rate_ = 0;  // known from before; 0: not known [Hz]
  double rate_ = 0;        // that, or as required by the mel stage [Hz]
  std::int64_t most_held_ = 0;
  mutable std::atomic<std::int64_t> trimmed_{0}, microseconds_{0};
};

const RegisterStage<TrimSilence, TrimSilenceOptions> register_trim_silence{
    "trim_silence", "Cuts off the silence before the first and after the last sound.", true};

}  // namespace
}  // namespace melflow
