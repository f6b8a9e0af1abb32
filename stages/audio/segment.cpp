// segment: cuts recordings into the windows of samples that make the rows.
//
// In:  Waveform blocks.
// Out: Windows: for each block, the rows that it completes and the samples that they need.
//      Without a length the recording is not cut; each block then begins with the samples of the
//      block before that frames across the seam need.

#include <algorithm>
#include <atomic>
#include <cstring>
#include <tuple>

#include <fmt/format.h>

#include "pipeline/stage/registry.h"
#include "stages/facts.h"
#include "stages/items.h"
#include "stages/length.h"
#include "stages/other_names.h"
#include "stages/passes_streams.h"

namespace melflow {

enum class Tail { drop, pad };
template <>
struct EnumNames<Tail> {
  static constexpr std::pair<const char*, Tail> values[] = {{"drop", Tail::drop},
                                                            {"pad", Tail::pad}};
};

namespace {

// "11472 samples of 16000 (0.717 s of 1 s)"
std::string of_length(std::int64_t seen, std::int64_t bound, int sample_rate) {
  return fmt::format("{} samples of {} ({:.3f} s of {:.6g} s)", seen, bound,
                     static_cast<double>(seen) / sample_rate,
                     static_cast<double>(bound) / sample_rate);
}

// "262144 samples, 240000 are allowed (16.384 s, not 15 s)"
std::string over_length(std::int64_t seen, std::int64_t bound, int sample_rate) {
  return fmt::format("{} samples, {} are allowed ({:.3f} s, not {:.6g} s)", seen, bound,
                     static_cast<double>(seen) / sample_rate,
                     static_cast<double>(bound) / sample_rate);
}

struct WindowOptions {
  std::optional<Length> length, hop;

  void describe_as(const char* which, Schema& s) {
    s.field("length", length, fmt::format("length of a {} window; required in its group", which));
    s.field("hop", hop,
            fmt::format("distance from the start of a {} window to the start of the next; not set: "
                        "the length of one",
                        which));
  }
};
struct LongWindows : WindowOptions {
  void describe(Schema& s) { describe_as("long", s); }
};
struct ShortWindows : WindowOptions {
  void describe(Schema& s) { describe_as("short", s); }
};

struct SegmentOptions {
  std::optional<Length> length, hop;
  std::optional<LongWindows> long_windows;
  std::optional<ShortWindows> short_windows;
  Tail tail = Tail::drop;
  std::optional<Length> min_length, max_length;

  void describe(Schema& s) {
    s.other_names(other_names::of_segment());
    s.field("length", length,
            "length of a window; all frames of a window form one row; not set: recordings are not "
            "cut, and each frame is a row");
    s.field("hop", hop,
            "distance from the start of a window to the start of the next; not set: length");
    s.group("long", long_windows,
            "cuts in two steps, in place of length and hop: long windows of the recording, and "
            "within each of them the windows of short; needs long.length and short.length");
    s.group("short", short_windows,
            "windows within every one of long, which become rows; only together with long");
    s.field("tail", tail,
            "how to treat samples after the last whole window (of long, with long); drop: they "
            "give no row, and a recording shorter than a window is skipped; pad: silence is added "
            "to make one more window");
    s.field("min_length", min_length,
            "length below which a recording is skipped; with tail: pad also the length below which "
            "the rest after the last whole window is dropped; not set: no limit");
    s.field("max_length", max_length,
            "length above which a recording is skipped; not set: no limit");
  }
};

struct SegmentState final : StageState {
  Buffer kept;  // samples from `kept_at` on that later rows need
  std::int64_t kept_at = 0, kept_count = 0;
  std::int64_t rows = 0;  // emitted so far
};

class Segment final : public StreamTransform<Waveform, Windows, SegmentState>,
                      public TellsLength,
                      public PassesStreams {
 public:
  static constexpr bool kIsPutIn = true;
  explicit Segment(SegmentOptions options) : options_(options) {}

  [[nodiscard]] Requirements require(const Requirements& below) const override {
    Requirements above = below;
    above.erase(requirement::kBlockMultiple);
    const double rate = below.get_or(requirement::kSampleRate, 0);
    const auto is_known = [rate](const std::optional<Length>& l) {
      return !l || !l->is_time() || rate > 0;
    };
    if (two_stage() || !options_.length || !is_known(options_.length) || !is_known(options_.hop))
      return above;
    if (const WindowGrid g = grid(rate); g.long_hop > 0 && g.long_hop >= g.long_length)
      above.set(requirement::kBlockMultiple, g.long_hop);
    return above;
  }

  Properties plan(const Properties& given, const Requirements& required,
                  PlanCheck& check) override {
    check_lengths(check);
    context_ = required.get_or(requirement::kContext, 0);
    rate_ = given.get_or(property::kSampleRate, required.get_or(requirement::kSampleRate, 0));
    Properties out = given;
    const SegmentOptions& o = options_;
    if (given.get_or(property::kIsMarked, false))
      check.warning("",
                    "the stretches that were marked before are not used; put segments_by between");
    check_units(check);
    if (o.long_windows || o.short_windows) {
      if (o.length || o.hop) check.error("long", "cannot be set together with length or hop");
      if (!o.long_windows || !o.long_windows->length) check.error("long", "has no length; set it");
      if (!o.short_windows || !o.short_windows->length)
        check.error("short", "has no length; set it");
      if (!o.long_windows || !o.short_windows || !o.long_windows->length ||
          !o.short_windows->length)
        return out;
    } else if (!o.length) {
      if (o.hop) check.error("hop", "is used with length only; set length, or remove hop");
      if (o.tail == Tail::pad)
        check.error("tail", "is used with length only; set length, or remove tail");
      return out;
    }
    // The rate that is known, or that the mel stage requires.
    const double rate = rate_;
    if (rate <= 0) {
      const char* const first = two_stage() ? "long" : "length";
      const Length& length = two_stage() ? *o.long_windows->length : *o.length;
      check.error(first, fmt::format("the sample rate is not known{}; set the sample_rate of the "
                                     "stage that makes rows (mel, samples), or add a node of the "
                                     "stage resample",
                                     length.is_time() ? ""
                                                      : ", and windows of as many samples last "
                                                        "longer or shorter in files of others"));
      return out;
    }
    const WindowGrid g = grid(rate);
    expected_ = g;
    constexpr const char* kNoWindow =
        "0 samples are no window; write a time such as 1s, or a number of samples";
    constexpr const char* kNoHop =
        "0 samples are no hop; write a time such as 500ms, or a number of samples";
    if (g.long_length < 1)
      check.error(two_stage() ? "long" : "length", kNoWindow);
    else if (g.long_hop < 1)
      check.error(two_stage() ? "long" : "hop", kNoHop);
    if (two_stage() && g.length < 1)
      check.error("short", kNoWindow);
    else if (two_stage() && g.short_hop < 1)
      check.error("short", kNoHop);
    if (g.length > g.long_length)
      check.error("short", fmt::format("{} samples do not fit into a long window of {}", g.length,
                                       g.long_length));
    if (g.length >= 1) out.set(property::kWindow, g.length);
    if (g.long_hop >= 1)
      out.set(property::kRowsPerSample,
              static_cast<double>(g.per_long) / static_cast<double>(g.long_hop));
    out.set(property::kRowsExtra, 2.0 * static_cast<double>(g.per_long));
    out.set(property::kWindowGrid, g);
    return out;
  }

  // Writes lengths in samples if the rate is known.
  [[nodiscard]] std::optional<Value> settings() const override {
    if (is_cut() && !expected_) return std::nullopt;
    Value out = Value::map({});
    const auto number = [](std::int64_t n) { return Value::scalar(std::to_string(n)); };
    if (expected_) {
      out.set("length", number(expected_->length));
      if (expected_->long_length != expected_->length) {
        out.set("long_length", number(expected_->long_length));
        out.set("long_hop", number(expected_->long_hop));
        out.set("short_hop", number(expected_->short_hop));
      } else {
        out.set("hop", number(expected_->long_hop));
      }
      out.set("tail", OptionType<Tail>::echo(options_.tail));
    }
    const auto limit = [&](const char* name, const std::optional<Length>& length) {
      if (length)
        out.set(name, rate_ > 0 ? number(length->at(rate_)) : OptionType<Length>::echo(*length));
    };
    limit("min_length", options_.min_length);
    limit("max_length", options_.max_length);
    return out;
  }

  [[nodiscard]] std::vector<std::pair<std::string, Value>> summary() const override {
    if (dropped_tails_ == 0) return {};
    return {{"dropped_tails", Value::scalar(std::to_string(dropped_tails_.load()))},
            {"dropped_seconds",
             Value::scalar(
                 fmt::format("{:.3f}", static_cast<double>(dropped_microseconds_.load()) * 1e-6))}};
  }

  [[nodiscard]] StageResources resources() const override {
    return {.size_option = options_.length ? "length" : options_.long_windows ? "long.length" : ""};
  }

  // Upper bound: the samples kept from earlier blocks plus the block's; a single block passes
  // unchanged.
  [[nodiscard]] std::size_t output_bound(const SourceInfo&, std::size_t input) const override {
    const std::int64_t kept = expected_ ? expected_->long_length + expected_->long_hop : context_;
    return BufferPool::rounded(input + 2 * static_cast<std::size_t>(kept) * sizeof(float));
  }

  Result<std::shared_ptr<const Windows>> process_block(std::shared_ptr<const Waveform> in,
                                                       SegmentState& state,
                                                       ItemContext& context) const override {
    auto out = std::make_shared<Windows>();
    out->sample_rate = in->sample_rate;
    out->first = in->first;
    out->last = in->last;
    out->file = in->file;
    out->fresh = in->start;
    join(*in, state, context, *out);
    const std::int64_t seen = in->start + in->samples.count;
    std::int64_t needed_from = std::max<std::int64_t>(0, seen - context_);
    const std::int64_t shortest =
        options_.min_length ? options_.min_length->at(in->sample_rate) : 0;
    if (in->last && seen < shortest)
      return ItemError::skipped(
          fmt::format("shorter than min_length: {}", of_length(seen, shortest, in->sample_rate)));
    if (options_.max_length && seen > options_.max_length->at(in->sample_rate))
      return ItemError::skipped(fmt::format(
          "longer than max_length: {}{}", in->last ? "" : "at least ",
          over_length(seen, options_.max_length->at(in->sample_rate), in->sample_rate)));
    if (is_cut()) {
      const WindowGrid g = grid(in->sample_rate);
      if (auto error = other_grid(g, in->sample_rate)) return std::move(*error);
      const std::int64_t longs = in->last ? all_longs(g, seen, shortest) : whole_longs(g, seen);
      out->grid = g;
      out->first_row = state.rows;
      out->row_count = longs * g.per_long - state.rows;
      if (in->last) note_tail(g, seen, longs, in->sample_rate);
      if (in->last && longs == 0)
        return ItemError::skipped(fmt::format("shorter than one window: {}",
                                              of_length(seen, g.long_length, in->sample_rate)));
      state.rows = longs * g.per_long;
      needed_from = longs * g.long_hop;
    }
    if (!in->last) keep(*out, needed_from, state, context);
    if (is_cut() && out->row_count == 0 && !in->last) return std::shared_ptr<const Windows>{};
    return std::shared_ptr<const Windows>(std::move(out));
  }

  [[nodiscard]] std::string why_no_stream() const override {
    if (is_cut())
      return fmt::format("{}: a row is a window, whose samples are all there before it is computed",
                         two_stage() ? "long, short" : "length");
    if (options_.min_length || options_.max_length)
      return fmt::format("{}: whether a recording is skipped is known at its end only",
                         options_.min_length ? "min_length" : "max_length");
    return {};
  }

  [[nodiscard]] std::optional<RecordingLength> length_of(RecordingLength in) const override {
    const auto limit = [&](const std::optional<Length>& l, std::int64_t none) {
      return l ? l->at(in.sample_rate) : none;
    };
    const std::int64_t shortest = limit(options_.min_length, 0);
    if (in.samples < shortest || in.samples > limit(options_.max_length, in.samples))
      return std::nullopt;
    if (!is_cut()) return in;
    const WindowGrid g = grid(in.sample_rate);
    if (other_grid(g, in.sample_rate)) return std::nullopt;
    in.rows = all_longs(g, in.samples, shortest) * g.per_long;
    return in;
  }

 private:
  void check_lengths(PlanCheck& check) const {
    const auto &least = options_.min_length, &most = options_.max_length;
    if (most && most->is_zero())
      check.error("max_length", "no recording is that short; give a length or remove it");
    else if (least && most && least->is_time() == most->is_time() && most->at(1e6) < least->at(1e6))
      check.error("max_length", fmt::format("{} is less than min_length ({}), so that every "
                                            "recording is skipped; exchange the two",
                                            OptionType<Length>::echo(*most).text(),
                                            OptionType<Length>::echo(*least).text()));
  }

  // Warns of lengths that are too short and probably meant in seconds.
  void check_units(PlanCheck& check) const {
    constexpr double kLeast = 0.01, kLeastHop = 0.003;  // [s]
    for (const auto& [name, length, least] : {std::tuple("length", options_.length, kLeast),
                                              {"hop", options_.hop, kLeastHop},
                                              {"min_length", options_.min_length, kLeast},
                                              {"max_length", options_.max_length, kLeast}})
      if (const std::string remark = length ? length->unit_remark(rate_, least, "s") : "";
          !remark.empty())
        check.warning(name, remark);
  }

  [[nodiscard]] bool two_stage() const { return options_.long_windows.has_value(); }
  [[nodiscard]] bool is_cut() const { return two_stage() || options_.length.has_value(); }

  [[nodiscard]] WindowGrid grid(double rate) const {
    WindowGrid g;
    if (!two_stage()) {
      g.length = g.long_length = options_.length->at(rate);
      g.long_hop = g.short_hop = options_.hop.value_or(*options_.length).at(rate);
      return g;
    }
    const WindowOptions &l = *options_.long_windows, &s = *options_.short_windows;
    g.long_length = l.length->at(rate);
    g.long_hop = l.hop.value_or(*l.length).at(rate);
    g.length = s.length->at(rate);
    g.short_hop = s.hop.value_or(*s.length).at(rate);
    if (g.short_hop > 0 && g.length <= g.long_length)
      g.per_long = (g.long_length - g.length) / g.short_hop + 1;
    return g;
  }

  // Only the window grid of the plan was checked and charged. At another rate a time yields another
  // grid, with hops of no sample or windows as long as the file.
  [[nodiscard]] std::optional<ItemError> other_grid(const WindowGrid& g, int rate) const {
    if (!expected_) return std::nullopt;
    const auto differs = [&](const char* what, std::int64_t has, std::int64_t expected) {
      return ItemError::failed(
          fmt::format("is sampled at {} Hz, where a {} has {} samples instead of {}; put a "
                      "resample stage before this node",
                      rate, what, has, expected));
    };
    if (g.length != expected_->length) return differs("window", g.length, expected_->length);
    if (g.long_length != expected_->long_length)
      return differs("long window", g.long_length, expected_->long_length);
    if (g.long_hop != expected_->long_hop) return differs("hop", g.long_hop, expected_->long_hop);
    if (g.short_hop != expected_->short_hop)
      return differs("short hop", g.short_hop, expected_->short_hop);
    return std::nullopt;
  }

  static std::int64_t whole_longs(const WindowGrid& g, std::int64_t n) {
    return n < g.long_length ? 0 : (n - g.long_length) / g.long_hop + 1;
  }

  // Includes a padded window for samples that no whole window covers.
  [[nodiscard]] std::int64_t all_longs(const WindowGrid& g, std::int64_t n,
                                       std::int64_t shortest) const {
    const std::int64_t whole = whole_longs(g, n);
    if (options_.tail == Tail::drop) return whole;
    const std::int64_t covered = whole == 0 ? 0 : (whole - 1) * g.long_hop + g.long_length;
    const std::int64_t left = n - whole * g.long_hop;
    return n > covered && left >= std::max<std::int64_t>(1, shortest) ? whole + 1 : whole;
  }

  // Counts samples after the last window, which are in no row.
  void note_tail(const WindowGrid& g, std::int64_t seen, std::int64_t longs, int rate) const {
    const std::int64_t covered = longs == 0 ? 0 : (longs - 1) * g.long_hop + g.long_length;
    if (longs == 0 || covered >= seen || rate <= 0) return;
    dropped_tails_.fetch_add(1, std::memory_order_relaxed);
    dropped_microseconds_.fetch_add((seen - covered) * 1'000'000 / rate, std::memory_order_relaxed);
  }

  // Joins the kept samples and the block's; copies only if any are kept.
  static void join(const Waveform& in, const SegmentState& state, ItemContext& context,
                   Windows& out) {
    out.samples = in.samples;
    out.begin = in.start;
    if (state.kept_count == 0) return;
    const std::size_t size = size_of(in.samples.type);
    const std::size_t old_bytes = static_cast<std::size_t>(state.kept_count) * size;
    auto joined =
        std::make_shared<Buffer>(context.run().pool.lease(old_bytes + in.samples.bytes()));
    std::memcpy(joined->data(), state.kept.data(), old_bytes);
    std::memcpy(joined->data() + old_bytes, in.samples.data, in.samples.bytes());
    out.begin = state.kept_at;
    out.samples = {joined, joined->data(), state.kept_count + in.samples.count, in.samples.type};
  }

  static void keep(const Windows& block, std::int64_t from, SegmentState& state,
                   ItemContext& context) {
    from = std::clamp(from, block.begin, block.end());
    const std::size_t size = size_of(block.samples.type);
    state.kept_at = from;
    state.kept_count = block.end() - from;
    state.kept = context.run().pool.lease(static_cast<std::size_t>(state.kept_count) * size);
    std::memcpy(state.kept.data(),
                block.samples.data + static_cast<std::size_t>(from - block.begin) * size,
                static_cast<std::size_t>(state.kept_count) * size);
  }

  SegmentOptions options_;
  double rate_ = 0;                     // known, or required by the mel stage [Hz]
  std::int64_t context_ = 0;            // samples that the frames across a seam need
  std::optional<WindowGrid> expected_;  // at the rate of the plan
  mutable std::atomic<std::int64_t> dropped_tails_{0}, dropped_microseconds_{0};
};

const RegisterStage<Segment, SegmentOptions> register_segment{
    "segment", "Cuts recordings into windows, in one step or two, or leaves them whole.", true};

}  // namespace
}  // namespace melflow
