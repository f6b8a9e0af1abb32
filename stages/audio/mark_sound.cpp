// mark_sound: marks the stretches of a recording that are not silent, for segments_by.
//
// In, out: Waveform. The samples are unchanged, and are emitted as soon as it is known which are
// marked. That depends on the recording alone, not on its blocks.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include <fmt/format.h>

#include "pipeline/stage/registry.h"
#include "stages/audio/heard_stretch.h"
#include "stages/audio/trim_silence_options.h"
#include "stages/facts.h"
#include "stages/items.h"

namespace melflow {
namespace {

// [Hz] Used where the rate is unknown, to bound the samples that are held: above all rates at which
// sound is recorded, also that of bats.
constexpr double kHighestRate = 768'000;

struct MarkSoundOptions {
  Level threshold{-40};
  Length frame{2048}, hop{512};
  Length keep = Length::of_seconds(0.1), silence = Length::of_seconds(0.3);

  void describe(Schema& s) {
    s.field("threshold", threshold,
            "a frame at or below this level is silent; 0dB is a mean square of 1 (a full-scale "
            "sine is at -3dB)")
        .range(-200, 0);
    s.field("frame", frame, "length of a frame, whose mean square is its level");
    s.field(
        "hop", hop,
        "distance from the middle of a frame to the middle of the next; the middle of the first "
        "frame is the first sample");
    s.field("keep", keep,
            "silence that belongs to a stretch, before its first sound and after its last");
    s.field(
        "silence", silence,
        "silence between two stretches, without what belongs to them: what is less apart is one "
        "stretch");
  }
};

// Lengths in samples of one recording.
struct SoundLengths : LevelFrames {
  std::int64_t keep = 0, silence = 0;
  // The most samples that are held until it is known whether they are marked.
  [[nodiscard]] std::int64_t held() const { return frame + hop + 2 * keep + silence; }
};

struct SoundState final : StageState {
  KeptSamples kept;                // samples not emitted yet or needed by later frames
  std::int64_t next_frame = 0;     // to be examined
  std::vector<Stretch> stretches;  // not emitted as a whole; the last one may grow
  bool is_open = false;            // whether the last one may grow
  std::int64_t given_to = 0;
};

class MarkSound final : public StreamTransform<Waveform, Waveform, SoundState> {
 public:
  explicit MarkSound(MarkSoundOptions options) : options_(options) {}

  [[nodiscard]] Requirements require(const Requirements& below) const override {
    Requirements above = below;
    above.erase(requirement::kBlockMultiple);  // the output's blocks end elsewhere
    return above;
  }

  Properties plan(const Properties& given, const Requirements& required,
                  PlanCheck& check) override {
    given_rate_ = given.get_or(property::kSampleRate, 0);
    rate_ = given_rate_ > 0 ? given_rate_ : required.get_or(requirement::kSampleRate, 0);
    const SoundLengths l = lengths(rate_ > 0 ? rate_ : kHighestRate);
    if (l.frame < 1) check.error("frame", "a frame of no sample");
    if (l.hop < 1) check.error("hop", "a hop of no sample");
    most_held_ = l.held();
    Properties out = given;
    out.set(property::kIsMarked, true);
    return out;
  }

  // Writes lengths in samples if the rate is known.
  [[nodiscard]] std::optional<Value> settings() const override { return settings_at(rate_); }
  [[nodiscard]] std::optional<Value> settings_alone() const override {
    return settings_at(given_rate_);
  }

  // Upper bound: the samples held back from earlier blocks plus those of this block.
  [[nodiscard]] std::size_t output_bound(const SourceInfo&, std::size_t input) const override {
    return BufferPool::rounded(input + 2 * static_cast<std::size_t>(most_held_) * sizeof(float));
  }

  Result<std::shared_ptr<const Waveform>> process_block(std::shared_ptr<const Waveform> in,
                                                        SoundState& state,
                                                        ItemContext& context) const override {
    const SoundLengths l = lengths(in->sample_rate);
    if (l.frame < 1 || l.hop < 1)
      return ItemError::failed(
          fmt::format("is sampled at {} Hz, where a {} is less than one sample", in->sample_rate,
                      l.frame < 1 ? "frame" : "hop"));
    if (l.held() > most_held_)
      return ItemError::failed(fmt::format(
          "is sampled at {} Hz, where frame, hop, keep and silence are longer than the {} "
          "samples that may be held; put a resample stage before this node",
          in->sample_rate, most_held_));
    const HeardStretch all = state.kept.joined(*in, context.run().pool);
    const std::int64_t to = look(*in, all, l, state);
    if (to == state.given_to && !in->last) {
      keep(all, l, state, context);
      return std::shared_ptr<const Waveform>{};
    }
    auto out = std::make_shared<Waveform>(*in);
    out->samples = all.part(state.given_to, to);
    out->start = state.given_to;
    out->first = state.given_to == 0;
    for (const Stretch& s : state.stretches) {
      const Stretch in_block{std::max(s.begin, state.given_to), std::min(s.end, to)};
      if (in_block.end > in_block.begin) out->marked.push_back(in_block);
    }
    std::erase_if(state.stretches, [&](const Stretch& s) {
      return s.end <= to && (!state.is_open || &s != &state.stretches.back());
    });
    state.given_to = to;
    if (!in->last) keep(all, l, state, context);
    return std::shared_ptr<const Waveform>(std::move(out));
  }

 private:
  [[nodiscard]] Value settings_at(double rate) const {
    MarkSoundOptions own = options_;
    if (rate > 0)
      for (Length* l : {&own.frame, &own.hop, &own.keep, &own.silence}) *l = Length(l->at(rate));
    Schema s;
    own.describe(s);
    return s.echo(false);
  }

  [[nodiscard]] SoundLengths lengths(double rate) const {
    return {{options_.frame.at(rate), options_.hop.at(rate)},
            options_.keep.at(rate),
            options_.silence.at(rate)};
  }

  // Examines the complete frames; returns the sample up to which all marks are known.
  [[nodiscard]] std::int64_t look(const Waveform& in, const HeardStretch& all,
                                  const SoundLengths& l, SoundState& state) const {
    const double limit = std::pow(10.0, options_.threshold.db / 10);
    const std::int64_t frames = in.last ? l.count(all.end()) : 0;
    while (in.last ? state.next_frame < frames : l.begin(state.next_frame) + l.frame <= all.end()) {
      if (all.mean_square(l, state.next_frame) > limit) sound_at(state.next_frame, l, state);
      ++state.next_frame;
    }
    if (in.last) {
      if (state.is_open)
        state.stretches.back().end = std::min(state.stretches.back().end, all.end());
      state.is_open = false;
      return all.end();
    }
    // The earliest sample at which the next sound may begin a stretch.
    const std::int64_t next = state.next_frame * l.hop - l.keep;
    if (state.is_open && next - state.stretches.back().end >= l.silence) state.is_open = false;
    const std::int64_t known = state.is_open ? state.stretches.back().end : next;
    return std::clamp(known, state.given_to, all.end());
  }

  static void sound_at(std::int64_t frame, const SoundLengths& l, SoundState& state) {
    const std::int64_t begin = std::max<std::int64_t>(0, frame * l.hop - l.keep);
    const bool goes_on = state.is_open && begin - state.stretches.back().end < l.silence;
    if (!goes_on) state.stretches.push_back({begin, 0});
    state.stretches.back().end = (frame + 1) * l.hop + l.keep;
    state.is_open = true;
  }

  static void keep(const HeardStretch& all, const SoundLengths& l, SoundState& state,
                   ItemContext& context) {
    state.kept.keep(all, std::min(l.begin(state.next_frame), state.given_to), context.run().pool);
  }

  MarkSoundOptions options_;
  double given_rate_ = 0;  // known from before; 0: not known [Hz]
  double rate_ = 0;        // that, or as required by the mel stage [Hz]
  std::int64_t most_held_ = 0;
};

const RegisterStage<MarkSound, MarkSoundOptions> register_mark_sound{
    "mark_sound",
    "Marks the stretches of a recording that are not silent; segments_by makes a result of each.",
    true};

}  // namespace
}  // namespace melflow
