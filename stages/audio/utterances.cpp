// utterances: cuts the utterances that a manifest names out of their recordings.
//
// In:  Waveform blocks of a recording, each utterance of which has a record in the ledger.
// Out: Waveform blocks. Each utterance is a stream of its own, with its own copy of the samples,
//      counted from 0. Utterances are emitted one after the other in the order of their starts, so
//      that an utterance waits only for samples that exist. Where utterances overlap, a copy of the
//      recording's end is kept from block to block. An utterance that lies in two blocks is emitted
//      in two pieces, or, where a later stage takes whole recordings, as one with the second block.

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include <fmt/format.h>

#include "pipeline/stage/registry.h"
#include "stages/facts.h"
#include "stages/items.h"
#include "stages/manifest.h"
#include "stages/node_group.h"
#include "stages/utterance_rule.h"

namespace melflow {
namespace {

// The bytes kept of a recording for utterances that overlap: Manifest::most_overlap() at 100 kHz.
constexpr std::size_t kMostKept = std::size_t{2} << 20;
// An end at most this much after the recording's end is a rounded number [s].
constexpr double kRounding = 0.01;

// The limits of Kaldi's extract-segments, as float like there [s]: it skips utterances up to
// kLeast, and those that end kOvershoot or more after their recording.
constexpr float kLeast = 0.1F, kOvershoot = 0.5F;

using Stretch = UtteranceSamples;
constexpr std::int64_t kNoEnd = UtteranceSamples::kNoEnd;

struct Recording final : StageState {
  Recording(const Manifest& of, UtteranceRule by) : list(of), rule(by) {}
  const Manifest& list;
  const UtteranceRule rule;
  Buffer kept;  // samples from `kept_at` on, up to the current block
  std::int64_t kept_at = 0, kept_count = 0;
  std::int64_t longest = 1;      // longest block so far [samples]
  std::shared_ptr<Stream> part;  // the current utterance; null between two
  Stretch utterance;
  std::int64_t given = 0;  // samples of the recording before it were emitted to the utterance
};

// The next piece of the current utterance, while it waits for memory.
struct UtterancePiece final : StageState {
  explicit UtterancePiece(Stretch of) : stretch(of) {}
  Stretch stretch;
};

class Utterances final : public ItemStage {
 public:
  explicit Utterances(NoOptions)
      : ItemStage({.kind = StageKind::transform,
                   .in = port_type<Waveform>(),
                   .out = port_type<Waveform>(),
                   .cuts = true}) {}

  Properties plan(const Properties& given, const Requirements& required,
                  PlanCheck& check) override {
    if (!given.get_or(property::kHasUtterances, false))
      check.error("", "is put there by a source with the option utterances; remove it");
    rule_ = given.get_or(property::kUtteranceRule, UtteranceRule::nearest);
    most_whole_ = required.get_or(requirement::kWholeBlock, 0);
    Properties out = given;
    out.erase(property::kHasUtterances);  // later stages see each as a file
    out.erase(property::kSamplesOfFile);
    return out;
  }

  // Outputs of versions that had `nearest` alone keep their fingerprint.
  [[nodiscard]] std::optional<Value> settings() const override {
    Value out;
    if (rule_ == UtteranceRule::nearest) return out;
    out = Value::map({});
    out.set("rule", OptionType<UtteranceRule>::echo(rule_));
    return out;
  }

  // Twice the samples, as both copies exist while one is made.
  [[nodiscard]] std::size_t keeps_of_stream(std::size_t) const override {
    return 2 * BufferPool::rounded(most_kept());
  }

  Result<Emission> run(const Item& item, std::unique_ptr<StageState>& cursor,
                       ItemContext& context) override {
    const auto in = payload_of<Waveform>(item);
    auto& state = context.state();
    if (!state)
      state = std::make_unique<Recording>(manifest_source(context.run())->manifest(), rule_);
    auto& recording = static_cast<Recording&>(*state);
    recording.longest = std::max(recording.longest, in->samples.count);
    Emission out;
    if (cursor != nullptr)
      out = give(*in, static_cast<UtterancePiece&>(*cursor).stretch, recording, context);
    if (const auto next = next_piece(*in, recording, context)) {
      out.more = true;
      out.part.next_bytes = bytes_of(*in, *next);
      out.part.next_record = recording.part->index();
      cursor = std::make_unique<UtterancePiece>(*next);
      return out;
    }
    cursor.reset();
    if (in->last)
      state.reset();
    else
      keep(*in, recording, context);
    return out;
  }

 private:
  UtteranceRule rule_ = UtteranceRule::nearest;
  std::size_t most_whole_ = 0;  // size of an utterance that may wait for its end [bytes]

  [[nodiscard]] std::size_t most_kept() const { return std::max(kMostKept, most_whole_); }
  // Whether the current utterance should wait for the next block: nothing of it was emitted yet.
  [[nodiscard]] bool waits(const Waveform& in, const Recording& r) const {
    if (in.last || r.utterance.to <= end_of(in) || r.given != r.utterance.from) return false;
    const std::int64_t to = r.utterance.to == kNoEnd ? end_of(in) : r.utterance.to;
    const auto most = static_cast<std::int64_t>(most_whole_ / size_of(in.samples.type));
    return to - r.utterance.from <= std::min(most, r.longest);
  }

  static std::int64_t end_of(const Waveform& block) { return block.start + block.samples.count; }
  static std::size_t bytes_of(const Waveform& in, const Stretch& s) {
    return BufferPool::rounded(static_cast<std::size_t>(s.to - s.from) * size_of(in.samples.type));
  }

  // Returns the stretch of a record at the rate of the block.
  static Stretch stretch_of(std::size_t record, const Waveform& in, const Recording& r) {
    double rate = in.sample_rate;
    if (r.list.span_unit() == Manifest::SpanUnit::samples) rate /= in.file.sample_rate;
    return samples_of(r.list.span(record), rate, r.rule);
  }

  // Returns the samples that can be emitted now; nullopt if the next block has to come first.
  [[nodiscard]] std::optional<Stretch> next_piece(const Waveform& in, Recording& r,
                                                  ItemContext& context) const {
    Stream& stream = *context.origin().stream;
    const std::int64_t end = end_of(in);
    for (;; end_utterance(r, stream)) {
      if (!r.part) {
        if (!stream.has_next_part()) return std::nullopt;
        const Stretch next = stretch_of(stream.next_part(), in, r);
        if (next.from >= end && !in.last) return std::nullopt;
        r.part = stream.begin_part();
        r.utterance = next;
        r.given = next.from;
        if (auto error = problem(in, r)) fail(r, std::move(*error), context);
      }
      if (r.part->is_lost_to(context.stage(), r.part->next_piece())) continue;
      auto error = in.last && r.utterance.to > end ? shorten(in, end, r, context) : std::nullopt;
      if (!error) error = lost(in, r.utterance);
      if (error) {
        fail(r, std::move(*error), context);
        continue;
      }
      if (waits(in, r)) return std::nullopt;
      const Stretch piece{r.given, std::min({r.utterance.to, end, r.given + r.longest})};
      if (piece.to > piece.from || piece.to == r.utterance.to) return piece;
      return std::nullopt;
    }
  }

  static void fail(const Recording& r, ItemError error, const ItemContext& context) {
    r.part->fail(context.stage(), std::move(error), r.part->next_piece());
  }

  [[nodiscard]] std::optional<ItemError> problem(const Waveform& in, const Recording& r) const {
    const double rate = in.sample_rate;
    if (r.rule == UtteranceRule::kaldi && in.file.is_mean)
      return ItemError::failed(
          fmt::format("its recording has {} channels, and Kaldi takes segments of one: write the "
                      "channel (0, 1, ...) as the fifth word of a line of segments, or downmix in "
                      "decode, or utterances: {{rule: nearest}} for the mean of all",
                      in.file.channels));
    if (in.last && r.utterance.from >= end_of(in))
      return ItemError::failed(fmt::format(
          "begins at {:.3f} s, but the recording is only {:.3f} s long",
          static_cast<double>(r.utterance.from) / rate, static_cast<double>(end_of(in)) / rate));
    if (r.utterance.from == r.utterance.to)
      return ItemError::failed(fmt::format("is less than a sample long at {} Hz", in.sample_rate));
    if (auto error = too_short(in, r)) return error;
    const std::int64_t there = r.kept_count > 0 ? r.kept_at : in.start;
    if (r.utterance.from < there)
      return ItemError::failed(fmt::format(
          "overlaps with the utterance before it by more than the {:.1f} s that are kept at {} Hz; "
          "list it as a recording of its own",
          static_cast<double>(most_kept()) / static_cast<double>(size_of(in.samples.type)) / rate,
          in.sample_rate));
    return std::nullopt;
  }

  // Samples after damage of unknown length are not at the position that their time says.
  static std::optional<ItemError> lost(const Waveform& in, const Stretch& utterance) {
    if (in.is_timed()) return std::nullopt;
    const double rate = in.file.sample_rate, seconds = static_cast<double>(in.untimed_from) / rate;
    const auto from = static_cast<std::int64_t>(seconds * in.sample_rate);
    if (utterance.to <= from) return std::nullopt;
    return ItemError::failed(fmt::format(
        "{} {:.3f} s, where its recording is damaged: how much is lost there is not known, so that "
        "what follows is not at its time",
        utterance.from < from ? "goes beyond" : "begins behind", seconds));
  }

  // By the rule of Kaldi.
  static std::optional<ItemError> too_short(const Waveform& in, const Recording& r) {
    const auto rate = static_cast<float>(in.sample_rate);
    if (r.rule != UtteranceRule::kaldi || r.utterance.to == kNoEnd ||
        r.utterance.to - r.utterance.from > static_cast<std::int64_t>(kLeast * rate))
      return std::nullopt;
    return ItemError::skipped(fmt::format(
        "is {:.3f} s long, and by the rule of Kaldi an utterance has more than {:.1f} s",
        static_cast<double>(r.utterance.to - r.utterance.from) / in.sample_rate, kLeast));
  }

  static std::optional<ItemError> shorten(const Waveform& in, std::int64_t end, Recording& r,
                                          ItemContext& context) {
    const double missing = static_cast<double>(r.utterance.to - end) / in.sample_rate;
    const auto overshoot =
        static_cast<std::int64_t>(kOvershoot * static_cast<float>(in.sample_rate));
    if (r.rule == UtteranceRule::kaldi && r.utterance.to != kNoEnd &&
        r.utterance.to - end >= overshoot)
      return ItemError::failed(fmt::format(
          "ends {:.3f} s after the end of its recording; by the rule of Kaldi it may be "
          "less than {:.1f} s",
          missing, kOvershoot));
    if (r.utterance.to != kNoEnd && missing > kRounding)
      r.part->warn(
          context.stage(),
          fmt::format("ends {:.3f} s after the end of its recording: has the rest only", missing),
          r.part->next_piece());
    r.utterance.to = end;
    return too_short(in, r);
  }

  static void end_utterance(Recording& r, Stream& stream) {
    r.part.reset();
    stream.end_part();
  }

  static Emission give(const Waveform& in, const Stretch& piece, Recording& r,
                       ItemContext& context) {
    const std::size_t size = size_of(in.samples.type);
    const std::int64_t count = piece.to - piece.from;
    auto buffer =
        std::make_shared<Buffer>(context.run().pool.lease(static_cast<std::size_t>(count) * size));
    const auto copy = [&](const std::byte* samples, std::int64_t at, std::int64_t n) {
      const std::int64_t from = std::max(piece.from, at), to = std::min(piece.to, at + n);
      if (to > from)
        std::memcpy(buffer->data() + static_cast<std::size_t>(from - piece.from) * size,
                    samples + static_cast<std::size_t>(from - at) * size,
                    static_cast<std::size_t>(to - from) * size);
    };
    copy(r.kept.data(), r.kept_at, r.kept_count);
    copy(in.samples.data, in.start, in.samples.count);

    auto out = std::make_shared<Waveform>();
    out->samples = {buffer, buffer->data(), count, in.samples.type};
    out->sample_rate = in.sample_rate;
    out->start = piece.from - r.utterance.from;
    out->first = piece.from == r.utterance.from;
    out->last = piece.to == r.utterance.to;
    out->stored = in.stored;
    const auto of_file = [&](std::int64_t samples) {
      return std::llround(static_cast<double>(samples) * in.file.sample_rate / in.sample_rate);
    };
    out->file = {in.file.sample_rate, of_file(piece.to - r.utterance.from),
                 r.utterance.to == kNoEnd ? 0 : of_file(r.utterance.to - r.utterance.from),
                 in.file.channels};
    r.given = piece.to;
    Emission e = emission(std::shared_ptr<const Waveform>(out));
    e.part.stream = r.part;
    e.part.first = out->first;
    e.part.last = out->last;
    if (out->last) end_utterance(r, *context.origin().stream);
    return e;
  }

  // Keeps the samples of the current block that the utterance which waits, or the next, needs.
  void keep(const Waveform& in, Recording& r, ItemContext& context) const {
    const std::size_t size = size_of(in.samples.type);
    const std::int64_t end = end_of(in), begin = r.kept_count > 0 ? r.kept_at : in.start;
    std::int64_t from = end;
    Stream& stream = *context.origin().stream;
    if (r.part && r.given == r.utterance.from)
      from = r.utterance.from;
    else if (stream.has_next_part())
      from = stretch_of(stream.next_part(), in, r).from;
    const auto most = static_cast<std::int64_t>(most_kept() / size);
    from = std::clamp(from, std::max(begin, end - most), end);
    Buffer kept;
    if (from < end) {
      kept = context.run().pool.lease(static_cast<std::size_t>(end - from) * size);
      const std::int64_t old = std::max<std::int64_t>(0, in.start - from);
      if (old > 0)
        std::memcpy(kept.data(), r.kept.data() + static_cast<std::size_t>(from - r.kept_at) * size,
                    static_cast<std::size_t>(old) * size);
      const std::int64_t at = std::max(from, in.start);
      std::memcpy(kept.data() + static_cast<std::size_t>(old) * size,
                  in.samples.data + static_cast<std::size_t>(at - in.start) * size,
                  static_cast<std::size_t>(end - at) * size);
    }
    r.kept = std::move(kept);
    r.kept_at = from;
    r.kept_count = end - from;
  }
};

const RegisterStage<Utterances, NoOptions> register_utterances{
    "utterances",
    "Cuts utterances out of their recordings; a source with the option utterances inserts this "
    "stage.",
    true};

}  // namespace
}  // namespace melflow
