// quality: measures recordings while they are decoded.
//
// In, out: Waveform, unchanged but for FileAudio::measured in the last block of a recording: decode
// fills it in, with a meter of this stage, and this stage adds what the list says.

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdlib>
#include <iterator>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "pipeline/base/near_names.h"
#include "pipeline/stage/registry.h"
#include "stages/audio/trim_silence_options.h"  // Level
#include "stages/facts.h"
#include "stages/items.h"
#include "stages/length.h"
#include "stages/manifest.h"
#include "stages/passes_streams.h"
#include "stages/quality/meter.h"

namespace melflow {

/// The measures that a configuration names.
struct MeasureChoice {
  MeasureSet set = default_measures();
};

template <>
struct OptionType<MeasureChoice> {
  static std::string name() { return "default, all or names of measures"; }
  static std::string parse(const Value& v, MeasureChoice& out) {
    std::vector<Value> items;
    if (v.is_scalar()) items.push_back(v);
    if (v.is_list()) items = v.items();
    if (items.empty()) return detail::is_not(v, "a measure or a list of measures");
    MeasureSet set;
    for (const Value& item : items) {
      if (!item.is_scalar()) return detail::is_not(item, "the name of a measure");
      const std::string& word = item.text();
      if (word == "default") {
        set |= default_measures();
      } else if (word == "all") {
        set |= decoded_measures();
      } else if (word == info_of(Measure::speech_share).name) {
        return "speech_share is measured by a stage of its own: put nodes vad and speech_share "
               "behind, in place of its name here";
      } else if (const MeasureInfo* one = measure_named(word)) {
        set.set(static_cast<std::size_t>(measure_of(*one)));
      } else {
        std::vector<std::string> names{"default", "all"};
        for (const MeasureInfo& m : measures()) names.emplace_back(m.name);
        return fmt::format("'{}' {}", excerpt(word), not_one_of(word, names, "docs/quality.md"));
      }
    }
    out.set = set;
    return {};
  }
  static Value echo(const MeasureChoice& v) {
    if (v.set == default_measures()) return Value::scalar("default");
    if (v.set.all()) return Value::scalar("all");
    std::vector<Value> names;
    for (const MeasureInfo& m : measures())
      if (v.set[static_cast<std::size_t>(measure_of(m))]) names.push_back(Value::scalar(m.name));
    return Value::list(std::move(names));
  }
};

namespace {

struct QualityOptions {
  MeasureChoice measures;
  Level quiet_floor{-50}, silent_floor{-80};
  std::string text = "text";

  void describe(Schema& s) {
    s.field("measures", measures,
            "what is measured: default (all but loudness and true_peak), all, or a list of names; "
            "docs/quality.md defines each");
    s.field("quiet_floor", quiet_floor,
            "level below which a frame of 10 ms is quiet; 0dB is a mean square of 1")
        .range(-200, 0);
    s.field("silent_floor", silent_floor,
            "level below which a frame of 10 ms is dead air, and a channel dead")
        .range(-200, 0);
    s.field("text", text, "entry of `columns` with what is said, for seconds_per_character");
  }
};

class Meters final : public MakesMeters {
 public:
  explicit Meters(const QualityOptions& options) : options_(options) {}
  [[nodiscard]] std::unique_ptr<SampleMeter> meter(int sample_rate, int channels) const override {
    return std::make_unique<QualityMeter>(
        options_.measures.set, QualityFloors{options_.quiet_floor.db, options_.silent_floor.db},
        sample_rate, channels);
  }

 private:
  const QualityOptions options_;
};

// Finds the sample rate in a path: "16kHz", or "16k" for a usual rate of speech or music (so that
// "128k", a bit rate, is none). 0: there is none.
double rate_in(std::string_view path) {
  constexpr double kUsual[] = {8, 11.025, 16, 22.05, 44.1, 48};
  const auto is_letter = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; };
  const auto is_number = [](char c) { return (c >= '0' && c <= '9') || c == '.'; };
  for (std::size_t at = 0; at < path.size(); ++at) {
    if (!is_number(path[at]) || path[at] == '.' || (at > 0 && is_letter(path[at - 1]))) continue;
    std::size_t end = at;
    while (end < path.size() && is_number(path[end])) ++end;
    const std::string number(path.substr(at, end - at));
    at = end;
    if (end == path.size() || (path[end] | 0x20) != 'k') continue;
    const bool has_hz =
        path.size() >= end + 3 && (path[end + 1] | 0x20) == 'h' && (path[end + 2] | 0x20) == 'z';
    const std::size_t next = end + (has_hz ? 3 : 1);
    if (next < path.size() && is_letter(path[next])) continue;
    const double rate = std::strtod(number.c_str(), nullptr);
    const bool is_usual = std::find(std::begin(kUsual), std::end(kUsual), rate) != std::end(kUsual);
    if (rate > 0 && (has_hz || is_usual)) return 1000 * rate;
  }
  return 0;
}

std::size_t characters(std::string_view utf8) {
  return static_cast<std::size_t>(std::count_if(utf8.begin(), utf8.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  }));
}

class Quality final : public Transform<Waveform, Waveform>,
                      public TellsLength,
                      public PassesStreams {
 public:
  explicit Quality(QualityOptions options)
      : options_(std::move(options)), meters_(std::make_shared<Meters>(options_)) {}

  [[nodiscard]] std::string why_no_stream() const override { return {}; }
  [[nodiscard]] std::optional<RecordingLength> length_of(RecordingLength in) const override {
    return in;
  }
  [[nodiscard]] StageResources resources() const override { return {.passes_on = true}; }

  [[nodiscard]] Requirements require(const Requirements& below) const override {
    Requirements above = below;
    above.set(requirement::kMeter, meters_);
    return above;
  }

  Properties plan(const Properties& given, const Requirements& required,
                  PlanCheck& check) override {
    if (required.get_or(requirement::kMeter, nullptr) != nullptr)
      check.error("", "another quality node follows; measure all in one of them");
    const std::string why = given.get_or(property::kNotMeasured, std::string());
    if (!why.empty())
      check.error("", why);
    else if (given.get_or(property::kMeter, nullptr) != meters_)
      check.error("", "measures what decode reads, and there is no decode node before it");
    Properties out = given;
    out.set(property::kMeasures, options_.measures.set);
    return out;
  }

  Result<std::shared_ptr<const Waveform>> process(std::shared_ptr<const Waveform> in,
                                                  ItemContext& context) const override {
    if (in->file.measured == nullptr) return in;
    auto values = std::make_shared<MeasureValues>(*in->file.measured);
    add_facts(in->file, context, *values);
    auto out = std::make_shared<Waveform>(*in);
    out->file.measured = std::move(values);
    return std::shared_ptr<const Waveform>(std::move(out));
  }

 private:
  [[nodiscard]] bool wants(Measure m) const {
    return options_.measures.set[static_cast<std::size_t>(m)];
  }

  // Sets what compares a recording with its entry in the list.
  void add_facts(const FileAudio& file, const ItemContext& context, MeasureValues& to) const {
    const ManifestSource* listed = manifest_source(context.run());
    if (listed == nullptr || file.sample_rate <= 0) return;
    const Manifest& manifest = listed->manifest();
    const std::size_t index = context.origin().stream->index();
    const double seconds = static_cast<double>(file.frames) / file.sample_rate;
    const DeclaredAudio declared = manifest.declared(index);
    const double rate = declared.rate > 0 ? declared.rate : rate_in(manifest.name_in_source(index));
    if (wants(Measure::rate_ratio) && rate > 0)
      to[Measure::rate_ratio] = static_cast<float>(file.sample_rate / rate);
    if (wants(Measure::length_ratio) && declared.seconds > 0)
      to[Measure::length_ratio] = static_cast<float>(seconds / declared.seconds);
    const std::vector<std::string>& names = manifest.text_names();
    const auto text = std::find(names.begin(), names.end(), options_.text);
    if (!wants(Measure::seconds_per_character) || text == names.end()) return;
    const std::size_t count =
        characters(manifest.text(index, static_cast<std::size_t>(text - names.begin())));
    if (count > 0)
      to[Measure::seconds_per_character] = static_cast<float>(seconds / static_cast<double>(count));
  }

  QualityOptions options_;
  std::shared_ptr<const MakesMeters> meters_;
};

const RegisterStage<Quality, QualityOptions> register_quality{
    "quality",
    "Measures every recording while it is decoded: level, clipping, silence, noise, bandwidth, "
    "hum, dropouts, loudness and others, as columns of the output and for `filter`.",
    true};

}  // namespace
}  // namespace melflow
