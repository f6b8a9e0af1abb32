// trim_silence: recordings without the silence before their first and behind their last sound.
//
// In, out: Waveform. Samples are counted again from the first that is left. Frame i has its middle at
// sample i * hop, with zeros beyond the recording, and its level is its mean square, as librosa has
// it. What becomes of a sample depends on the recording alone, not on its blocks.

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "pipeline/stage/registry.h"
#include "stages/facts.h"
#include "stages/items.h"
#include "stages/length.h"
#include "stages/other_names.h"

namespace melflow {
/// A level as it is written in a pipeline: -40dB, -40. 0 dB is a mean square of 1.
struct Level {
  double db = 0;
  [[nodiscard]] std::optional<double> as_number() const { return db; }
};

template <>
struct OptionType<Level> {
  static std::string name() { return "level (-40dB)"; }
  static std::string parse(const Value& v, Level& out) {
    std::string text = v.is_scalar() ? v.text() : "";
    if (text.ends_with("dB") || text.ends_with("db")) text.resize(text.size() - 2);
    while (text.ends_with(' ')) text.pop_back();
    if (!detail::parse_number(Value::scalar(text), out.db).empty())
      return detail::is_not(v, "a level such as -40dB");
    return {};
  }
  static Value echo(const Level& v) { return Value::scalar(number_text(v.db) + "dB"); }
};

namespace {

struct TrimSilenceOptions {
  std::optional<Level> threshold;
  std::optional<double> top_db;
  Length frame{2048}, hop{512}, keep{0};
  Length hold = Length::of_seconds(30);

  void describe(Schema& s) {
    s.other_names(other_names::of_trim_silence());
    s.field("threshold", threshold,
            "a frame at or below this level is silent; 0dB is a mean square of 1 (a full-scale "
            "sine is at -3dB). Set either threshold or top_db")
        .range(-200, 0);
    s.field("top_db", top_db,
            "a frame this many dB or more below the loudest frame of its recording is silent "
            "(librosa.effects.trim). Recordings longer than hold fail")
        .greater_than(0);
    s.field("frame", frame, "length of a frame, whose mean square is its level");
    s.field("hop", hop,
            "distance from the middle of a frame to the middle of the next; the middle of the "
            "first frame is the first sample");
    s.field("keep", keep, "silence that stays before the first sound and after the last one");
    s.field("hold", hold,
            "most audio kept in memory until it is known whether it is silence at an end. With "
            "threshold: at most this much silence is cut off at the end. With top_db: longer "
            "recordings fail");
  }
};

constexpr double kLeast = 1e-10;         // mean square; librosa's amin of 1e-5
constexpr double kAssumedRate = 48'000;  // [Hz] where none is known: what may be held is bounded

// In samples of one recording.
struct TrimLengths {
  std::int64_t frame = 0, hop = 0, keep = 0, hold = 0;

  [[nodiscard]] std::int64_t frame_begin(std::int64_t i) const { return i * hop - frame / 2; }
  // Of a whole recording.
  [[nodiscard]] std::int64_t frames(std::int64_t count) const {
    const std::int64_t padded = count + 2 * (frame / 2);
    return padded < frame ? 0 : (padded - frame) / hop + 1;
  }
};

// Samples of a recording from `begin` on. Each sum is of one frame and always in the same order.
struct HeardStretch {
  Samples samples;
  std::int64_t begin = 0;

  [[nodiscard]] std::int64_t end() const { return begin + samples.count; }
  [[nodiscard]] Samples part(std::int64_t from, std::int64_t to) const {
    Samples out = samples;
    out.data += static_cast<std::size_t>(from - begin) * size_of(samples.type);
    out.count = to - from;
    return out;
  }

  /// Of frame `i`, of which all samples that there are have to be here.
  [[nodiscard]] double mean_square(const TrimLengths& l, std::int64_t i) const {
    const std::int64_t from = std::max<std::int64_t>(0, l.frame_begin(i));
    const Samples in = part(from, std::max(from, std::min(l.frame_begin(i) + l.frame, end())));
    const auto length = static_cast<double>(l.frame);
    if (in.type == SampleType::int16)
      return static_cast<double>(sum_of(reinterpret_cast<const std::int16_t*>(in.data), in.count)) /
             (length * 32768 * 32768);
    return sum_of(reinterpret_cast<const float*>(in.data), in.count) / length;
  }

 private:
  static std::int64_t sum_of(const std::int16_t* x, std::int64_t n) {
    std::int64_t sum = 0;
    for (std::int64_t i = 0; i < n; ++i) sum += std::int32_t{x[i]} * x[i];
    return sum;
  }
  static double sum_of(const float* x, std::int64_t n) {
    constexpr int kLanes = 4;  // that compilers make a vector of
    double sums[kLanes] = {};
    std::int64_t i = 0;
    for (; i + kLanes <= n; i += kLanes)
      for (int k = 0; k < kLanes; ++k) sums[k] += static_cast<double>(x[i + k]) * x[i + k];
    for (; i < n; ++i) sums[0] += static_cast<double>(x[i]) * x[i];
    return sums[0] + sums[1] + sums[2] + sums[3];
  }
};

struct TrimState final : StageState {
  Buffer kept;  // samples from `kept_at` on that are not given yet or that later frames need
  std::int64_t kept_at = 0, kept_count = 0;
  std::int64_t next_frame = 0;  // to be looked at
  std::int64_t begin = -1;      // the first sample to be given; -1: there was no sound yet
  std::int64_t sound_end = 0;   // where the last sound ends, with what is to be kept behind it
  std::int64_t given_to = 0;    // samples up to here have been given, or dropped before the begin
};

class TrimSilence final : public StreamTransform<Waveform, Waveform, TrimState> {
 public:
  explicit TrimSilence(TrimSilenceOptions options) : options_(options) {}

  [[nodiscard]] Requirements require(const Requirements& below) const override {
    Requirements above = below;
    above.erase(requirement::kBlockMultiple);  // samples are elsewhere in what this gives
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
    rate_ = given.get_or(property::kSampleRate, required.get_or(requirement::kSampleRate, 0));
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
    return out;
  }

  [[nodiscard]] StageResources resources() const override { return {.size_option = "hold"}; }

  // In samples, where the rate is known.
  [[nodiscard]] std::optional<Value> settings() const override {
    TrimSilenceOptions own = options_;
    if (rate_ > 0)
      for (Length* l : {&own.frame, &own.hop, &own.keep, &own.hold}) *l = Length(l->at(rate_));
    Schema s;
    own.describe(s);
    return s.echo(false);
  }

  // A block with all that was held back, and what is held back now.
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
                      "samples that may be held; put a resample stage before",
                      in->sample_rate, l.hold));
    const HeardStretch all = joined(*in, state, context);
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
  [[nodiscard]] TrimLengths lengths(double rate) const {
    return {options_.frame.at(rate), options_.hop.at(rate), options_.keep.at(rate),
            options_.hold.at(rate)};
  }
  [[nodiscard]] static bool is_too_long(const TrimLengths& l) {
    return l.frame + l.hop + l.keep > l.hold;
  }
  [[nodiscard]] std::string rule() const {
    return options_.threshold ? "threshold " + OptionType<Level>::echo(*options_.threshold).text()
                              : "top_db " + number_text(*options_.top_db);
  }

  // By a level: up to where all samples are known to stay.
  std::int64_t end_by_level(const Waveform& in, const HeardStretch& all, const TrimLengths& l,
                            TrimState& state, ItemContext& context) const {
    const double limit = std::pow(10.0, options_.threshold.value_or(Level{}).db / 10);
    const std::int64_t frames = in.last ? l.frames(all.end()) : 0;
    while (in.last ? state.next_frame < frames
                   : l.frame_begin(state.next_frame) + l.frame <= all.end()) {
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

  // Relative to the loudest frame: nothing before all samples are there; -1 where they are too
  // many.
  std::int64_t end_by_peak(const Waveform& in, const HeardStretch& all, const TrimLengths& l,
                           TrimState& state) const {
    if (all.end() > l.hold) return -1;
    if (!in.last) return all.begin;
    std::vector<double> levels(static_cast<std::size_t>(l.frames(all.end())));
    for (std::size_t i = 0; i < levels.size(); ++i)
      levels[i] = std::max(kLeast, all.mean_square(l, static_cast<std::int64_t>(i)));
    const double loudest =
        levels.empty() ? kLeast : *std::max_element(levels.begin(), levels.end());
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

  // What was kept, which is taken out of the state, and the block; without a copy where nothing was.
  static HeardStretch joined(const Waveform& in, TrimState& state, ItemContext& context) {
    if (state.kept_count == 0) return {in.samples, in.start};
    const std::size_t old_bytes =
        static_cast<std::size_t>(state.kept_count) * size_of(in.samples.type);
    auto both = std::make_shared<Buffer>(context.run().pool.lease(old_bytes + in.samples.bytes()));
    std::memcpy(both->data(), state.kept.data(), old_bytes);
    state.kept = Buffer();
    if (in.samples.count > 0)
      std::memcpy(both->data() + old_bytes, in.samples.data, in.samples.bytes());
    return {{both, both->data(), state.kept_count + in.samples.count, in.samples.type},
            state.kept_at};
  }

  void keep(const HeardStretch& all, const TrimLengths& l, TrimState& state,
            ItemContext& context) const {
    std::int64_t from = options_.top_db ? 0 : l.frame_begin(state.next_frame);
    from = std::min(from, state.begin >= 0 ? state.given_to : state.next_frame * l.hop - l.keep);
    from = std::clamp(from, all.begin, all.end());
    const Samples rest = all.part(from, all.end());
    state.kept_at = from;
    state.kept_count = rest.count;
    state.kept = context.run().pool.lease(rest.bytes());
    if (rest.count > 0) std::memcpy(state.kept.data(), rest.data, rest.bytes());
  }

  void note(std::int64_t trimmed, int rate) const {
    if (trimmed <= 0 || rate <= 0) return;
    trimmed_.fetch_add(1, std::memory_order_relaxed);
    microseconds_.fetch_add(trimmed / rate * 1'000'000 + trimmed % rate * 1'000'000 / rate,
                            std::memory_order_relaxed);
  }

  TrimSilenceOptions options_;
  double rate_ = 0;  // that is known, or that the mel stage insists on [Hz]
  std::int64_t most_held_ = 0;
  mutable std::atomic<std::int64_t> trimmed_{0}, microseconds_{0};
};

const RegisterStage<TrimSilence, TrimSilenceOptions> register_trim_silence{
    "trim_silence", "Cuts off the silence before the first and after the last sound.", true};

}  // namespace
}  // namespace melflow
