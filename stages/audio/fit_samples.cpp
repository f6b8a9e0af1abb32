// fit_samples: gives recordings a certain number of samples.
//
// In, out: Waveform, or Windows of a grid, each of which counts as a recording, with the zeros
//          behind the end of its own, and which then lie one behind the other.
//
// Samples are left out at the end, and zeros, reflected samples or copies of the recording are
// added at its ends. The result depends on the recording alone, not on its blocks; samples are
// kept from block to block only where they may come again or be left out.

#include <algorithm>
#include <cstring>
#include <limits>
#include <optional>

#include <fmt/format.h>

#include "pipeline/stage/registry.h"
#include "stages/audio/heard_stretch.h"
#include "stages/audio/relaid_windows.h"
#include "stages/facts.h"
#include "stages/items.h"
#include "stages/length.h"
#include "stages/other_names.h"
#include "stages/settings_in_use.h"

namespace melflow {

enum class SamplePadding { constant, reflect, repeat, repeat_whole };
template <>
struct EnumNames<SamplePadding> {
  static constexpr std::pair<const char*, SamplePadding> values[] = {
      {"constant", SamplePadding::constant},
      {"reflect", SamplePadding::reflect},
      {"repeat", SamplePadding::repeat},
      {"repeat_whole", SamplePadding::repeat_whole}};
};

enum class SampleRest { fill, drop };
template <>
struct EnumNames<SampleRest> {
  static constexpr std::pair<const char*, SampleRest> values[] = {{"fill", SampleRest::fill},
                                                                  {"drop", SampleRest::drop}};
};

namespace {

struct FitSamplesOptions {
  std::optional<Length> length, multiple;
  Length extra, pad_left, pad_right;
  SampleRest rest = SampleRest::fill;
  SamplePadding pad_mode = SamplePadding::constant;

  void describe(Schema& s) {
    s.other_names(other_names::of_fit_samples());
    s.other_values(other_names::values_of_fit_samples());
    const auto is_free = [this] { return !length; };
    s.field("length", length,
            "length of every recording: shorter ones are filled up at the end, longer ones lose "
            "their end; not set: as multiple and extra say");
    s.field("multiple", multiple, "length of which every length becomes a multiple; see rest")
        .used_with("no length", is_free);
    s.field("extra", extra, "length that is always added at the end before multiple is applied")
        .used_with("no length", is_free);
    s.field("rest", rest,
            "what becomes of samples beyond the last whole multiple; fill: they are filled up to "
            "the next one; drop: they are left out")
        .used_with("multiple", [this] { return multiple.has_value() && !length; });
    s.field("pad_left", pad_left,
            "length that is added in front; not counted by length and multiple");
    s.field("pad_right", pad_right,
            "length that is added at the end; not counted by length and multiple");
    s.field("pad_mode", pad_mode,
            "what is added; constant: zeros; reflect: the recording mirrored at its ends, as often "
            "as needed. With length alone: repeat: the recording over and over; repeat_whole: "
            "whole copies, then zeros");
  }
};

// Lengths in samples. Places are counted from the recording's first sample; those before it, and
// those behind its last one, are added.
struct SampleFit {
  std::int64_t length = 0;  // 0: not set
  std::int64_t multiple = 1, extra = 0, left = 0, right = 0;
  bool drops = false;  // what is beyond the last whole multiple
  SamplePadding mode = SamplePadding::constant;

  [[nodiscard]] bool repeats() const {
    return mode == SamplePadding::repeat || mode == SamplePadding::repeat_whole;
  }
  // The length of a recording of so many samples without `left` and `right`.
  [[nodiscard]] std::int64_t body(std::int64_t samples) const {
    if (length > 0) return length;
    return (samples + extra + (drops ? 0 : multiple - 1)) / multiple * multiple;
  }
  // The length of such a recording; 0: nothing is left of it.
  [[nodiscard]] std::int64_t fitted(std::int64_t samples) const {
    const std::int64_t of_body = body(samples);
    return of_body == 0 ? 0 : left + of_body + right;
  }
  // The last samples that may be left out.
  [[nodiscard]] std::int64_t droppable() const { return drops ? multiple - 1 : 0; }
  // The most that is added behind a recording's own samples.
  [[nodiscard]] std::int64_t behind() const {
    return (length > 0 ? length : extra + (drops ? 0 : multiple - 1)) + right;
  }
  // The number of the last of `seen` samples that may come again.
  [[nodiscard]] std::int64_t kept_of(std::int64_t seen) const {
    if (mode == SamplePadding::constant) return 0;
    if (length > 0) return seen < length ? seen : repeats() ? 0 : right + 1;
    return droppable() + behind() + 1;
  }
  [[nodiscard]] std::int64_t most_kept() const {
    if (mode == SamplePadding::constant) return droppable();
    return std::max(length, kept_of(length)) + left + 1;
  }
  // What is at places from `place` on, outside a recording with `samples` samples, longer ones
  // being cut already: `count` of its samples from `first` on, forwards or backwards, or zeros.
  struct Run {
    std::int64_t first = 0, count = 0;
    int step = 0;  // 0: zeros
  };
  [[nodiscard]] Run run(std::int64_t place, std::int64_t samples) const {
    if (mode == SamplePadding::reflect) {
      if (samples == 1) return {0, 1, 1};
      const std::int64_t end = samples - 1, at = (place % (2 * end) + 2 * end) % (2 * end);
      return at < end ? Run{at, end - at, 1} : Run{2 * end - at, 2 * end - at, -1};
    }
    const std::int64_t end = mode == SamplePadding::repeat         ? length
                             : mode == SamplePadding::repeat_whole ? length / samples * samples
                                                                   : 0;
    if (place < 0 || place >= end) return {0, std::numeric_limits<std::int64_t>::max(), 0};
    return {place % samples, std::min(samples - place % samples, end - place), 1};
  }
};

// Copies `count` samples that end with `last`, the last one first.
template <class T>
void copy_backwards(const std::byte* last, std::int64_t count, std::byte* out) {
  const auto* from = reinterpret_cast<const T*>(last);
  for (auto* to = reinterpret_cast<T*>(out); count > 0; --count) *to++ = *from--;
}

// Places from `begin` on, up to `end`.
struct Places {
  std::int64_t begin = 0, end = 0;
};

struct FitState final : StageState {
  KeptSamples kept;
  std::int64_t given_to = 0;  // samples of the recording before it were emitted
  bool is_begun = false;      // whether what is added before it was
};

class FitSamples final : public ItemStage, public PassesAny, public TellsLength {
 public:
  explicit FitSamples(FitSamplesOptions options)
      : ItemStage({.kind = StageKind::transform, .in = kAnyPort, .out = kAnyPort}),
        options_(options) {}

  static std::vector<PortType> ports() { return {port_type<Waveform>(), port_type<Windows>()}; }
  void set_port(PortType port) override { are_windows_ = port == port_type<Windows>(); }

  [[nodiscard]] Requirements require(const Requirements& below) const override {
    Requirements above = below;
    above.erase(requirement::kBlockMultiple);  // the output's samples have other positions
    return above;
  }

  Properties plan(const Properties& given, const Requirements& required,
                  PlanCheck& check) override {
    const double rate =
        given.get_or(property::kSampleRate, required.get_or(requirement::kSampleRate, 0));
    const auto& [length, multiple, extra, left, right, rest, mode] = options_;
    if (rate <= 0)
      for (const auto& [name, l] : {std::pair{"length", length},
                                    {"multiple", multiple},
                                    {"extra", std::optional(extra)},
                                    {"pad_left", std::optional(left)},
                                    {"pad_right", std::optional(right)}})
        if (l && l->is_time() && !l->is_zero()) {
          check.error(name,
                      "the sample rate is not known; give a number of samples, set the sample_rate "
                      "of the stage that makes rows (mel, samples), or add a node of the stage "
                      "resample before this one");
          return given;
        }
    fit_ = {length ? length->at(rate) : 0,
            multiple ? multiple->at(rate) : 1,
            length ? 0 : extra.at(rate),
            left.at(rate),
            right.at(rate),
            rest == SampleRest::drop && !length,
            mode};
    if (length && fit_.length == 0)
      check.error("length", "nothing would be left of a recording; give a length or remove it");
    if (fit_.multiple == 0) check.error("multiple", "is no sample; give a length of at least one");
    fit_.multiple = std::max<std::int64_t>(1, fit_.multiple);
    if (!length && fit_.multiple == 1 && fit_.extra + fit_.left + fit_.right == 0)
      check.error("",
                  "needs length, multiple of more than one sample, extra, pad_left or pad_right: "
                  "how many samples there are to be");
    if (fit_.repeats() && !length)
      check.error("pad_mode", fmt::format("{} fills recordings up to length; set length",
                                          OptionType<SamplePadding>::echo(mode).text()));
    Properties out = given;
    out.erase(property::kSamplesOfFile);
    out.erase(property::kIsMarked);
    if (!are_windows_) return out;
    const auto grid = given.get(property::kWindowGrid);
    if (!grid) {
      check.error("from",
                  "the input is not cut into windows; take from a node before segment, for the "
                  "length of whole recordings, or give segment a length");
      return out;
    }
    const std::int64_t window = fit_.fitted(grid->length);
    if (window == 0)
      check.error("multiple", fmt::format("a window of {} samples is shorter than {}", grid->length,
                                          fit_.multiple));
    in_rows_ = {given.get_or(property::kRowsPerSample, 0), given.get_or(property::kRowsExtra, 0)};
    grid_ = windows_behind_each_other(std::max<std::int64_t>(1, window), out);
    return out;
  }

  [[nodiscard]] StageResources resources() const override {
    return {.size_option = options_.length ? "length" : options_.multiple ? "multiple" : ""};
  }

  // Lengths in samples, as the rate is known where one is a time.
  [[nodiscard]] std::optional<Value> settings() const override {
    FitSamplesOptions own = options_;
    if (own.length) own.length = Length(fit_.length);
    if (own.multiple) own.multiple = Length(fit_.multiple);
    own.extra = Length(fit_.extra);
    own.pad_left = Length(fit_.left);
    own.pad_right = Length(fit_.right);
    return settings_in_use(own);
  }

  // Upper bound: the samples of the block, those kept from earlier ones, and those that are added.
  [[nodiscard]] std::size_t output_bound(const SourceInfo&, std::size_t input) const override {
    if (are_windows_) return bound_of_windows(in_rows_, grid_, input);
    const std::int64_t more = 2 * fit_.most_kept() + fit_.left + fit_.behind();
    return BufferPool::rounded(input + static_cast<std::size_t>(more) * sizeof(float));
  }

  [[nodiscard]] std::optional<RecordingLength> length_of(RecordingLength in) const override {
    if (are_windows_) return in;
    in.samples = in.samples > 0 ? fit_.fitted(in.samples) : 0;
    return in.samples > 0 ? std::optional(in) : std::nullopt;
  }

  Result<Emission> run(const Item& item, std::unique_ptr<StageState>&,
                       ItemContext& context) override {
    if (are_windows_) return emission(windows(*payload_of<Windows>(item), context));
    const auto in = payload_of<Waveform>(item);
    std::unique_ptr<StageState>& of_stream = context.state();
    if (!of_stream) of_stream = std::make_unique<FitState>();
    auto& state = static_cast<FitState&>(*of_stream);
    BufferPool& pool = context.run().pool;
    Waveform cut = *in;
    if (fit_.length > 0)
      cut.samples.count = std::clamp<std::int64_t>(fit_.length - in->start, 0, in->samples.count);
    HeardStretch all = state.kept.joined(cut, pool);
    if (all.samples.count == 0) all.begin = state.given_to;  // the block is beyond `length`
    const std::int64_t seen = all.end(), body = fit_.body(seen);
    if (in->last && seen == 0) return ItemError::skipped("has no samples");
    if (in->last && body == 0)
      return ItemError::skipped(
          fmt::format("shorter than multiple: {} samples of {}", seen, fit_.multiple));
    const std::int64_t to =
        in->last ? std::min(seen, body) : std::max(state.given_to, seen - fit_.droppable());
    // Mirrored samples before the first one have to be there, and to remain.
    const bool waits = !state.is_begun && fit_.mode == SamplePadding::reflect && to <= fit_.left &&
                       (fit_.length == 0 || seen < fit_.length);
    if (!in->last && (waits || to == state.given_to)) {
      state.kept.keep(all, kept_from(state, seen), pool);
      return Emission{};
    }
    auto out = std::make_shared<Waveform>(*in);
    out->marked.clear();
    out->stored = false;
    out->first = !state.is_begun;
    const std::int64_t from = state.is_begun ? state.given_to : -fit_.left;
    const std::int64_t end = in->last ? body + fit_.right : to;
    out->start = from + fit_.left;
    if (from == state.given_to && end == to) {
      out->samples = all.part(from, to);
    } else {
      auto buffer = std::make_shared<Buffer>(
          pool.lease(static_cast<std::size_t>(end - from) * size_of(all.samples.type)));
      put(all, {from, end}, {state.given_to, to}, buffer->data());
      out->samples = {buffer, buffer->data(), end - from, all.samples.type};
    }
    state.is_begun = true;
    state.given_to = to;
    if (in->last)
      of_stream.reset();
    else
      state.kept.keep(all, kept_from(state, seen), pool);
    return emission(std::shared_ptr<const Waveform>(std::move(out)));
  }

 private:
  static inline const PortType kAnyPort{typeid(FitSamplesOptions), "waveform or windows"};

  [[nodiscard]] std::int64_t kept_from(const FitState& state, std::int64_t seen) const {
    return std::min(state.given_to, seen - fit_.kept_of(seen));
  }

  // Writes what is at `places`; `own` are those that get the recording's samples unchanged.
  void put(const HeardStretch& all, Places places, Places own, std::byte* out) const {
    const std::size_t size = size_of(all.samples.type);
    const auto at = [&](std::int64_t place) {
      return out + static_cast<std::size_t>(place - places.begin) * size;
    };
    const Samples same = all.part(own.begin, own.end);
    if (same.count > 0) std::memcpy(at(own.begin), same.data, same.bytes());
    for (const Places added : {Places{places.begin, own.begin}, Places{own.end, places.end}})
      for (std::int64_t place = added.begin; place < added.end;) {
        const auto [first, most, step] = fit_.run(place, own.end);
        const std::int64_t count = std::min(most, added.end - place);
        const std::byte* from = all.samples.data;
        if (step != 0) from += static_cast<std::size_t>(first - all.begin) * size;
        if (step == 0)
          std::memset(at(place), 0, static_cast<std::size_t>(count) * size);
        else if (step > 0)
          std::memcpy(at(place), from, static_cast<std::size_t>(count) * size);
        else if (all.samples.type == SampleType::int16)
          copy_backwards<std::int16_t>(from, count, at(place));
        else
          copy_backwards<float>(from, count, at(place));
        place += count;
      }
  }

  [[nodiscard]] std::shared_ptr<const Windows> windows(const Windows& in,
                                                       ItemContext& context) const {
    const std::int64_t length = in.grid->length, own = std::min(length, fit_.body(length));
    const std::size_t size = size_of(in.samples.type);
    std::vector<std::byte> padded;
    return relaid_windows(in, grid_, in.samples.type, context.run().pool,
                          [&](const Samples& window, std::int64_t, std::byte* out) {
                            Samples whole = window;
                            if (window.count < length) {
                              padded.assign(static_cast<std::size_t>(length) * size, std::byte{0});
                              if (window.count > 0)
                                std::memcpy(padded.data(), window.data, window.bytes());
                              whole = {nullptr, padded.data(), length, window.type};
                            }
                            put({whole, 0}, {-fit_.left, grid_.length - fit_.left}, {0, own}, out);
                          });
  }

  FitSamplesOptions options_;
  SampleFit fit_;
  bool are_windows_ = false;
  RowsPerSample in_rows_;  // of the windows that come
  WindowGrid grid_;        // of those that leave
};

const RegisterStage<FitSamples, FitSamplesOptions> register_fit_samples{
    "fit_samples", "Fills up or cuts recordings to a length, and adds samples at their ends.",
    true};

}  // namespace
}  // namespace melflow
