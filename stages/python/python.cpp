// python: calls a function of Python with each recording.
//
// In:  Waveform or MelBatch, of whole recordings; with `blocks`, Waveform of any length.
// Out: Waveform, also several for a recording; Waveform with marked stretches; or MelBatch.
//
// A node of this stage becomes one of six, by what it takes and gives.
// Those of samples are here; those with `blocks` and those that give rows have files of their own.

#include <cmath>

#include "stages/python/calling.h"

namespace melflow {
namespace {

class PythonWaveform final : public Calling<Transform<Waveform, Waveform>> {
 public:
  explicit PythonWaveform(PythonOptions options) : Calling(std::move(options)) {}

  static std::vector<NodeSpec> expand(const NodeSpec& spec) {
    const auto is = [&spec](const char* option, std::string_view wanted) {
      const Value* value = spec.options.find(option);
      return value != nullptr && value->text() == wanted;
    };
    const Value* blocks = spec.options.find("blocks");
    const bool has_blocks = blocks != nullptr && !blocks->is_null();
    const char* stage = is("takes", "rows")         ? "python_rows"
                        : has_blocks                ? "python_blocks"
                        : is("gives", "rows")       ? "python_features"
                        : is("gives", "utterances") ? "python_utterances"
                        : is("gives", "waveforms")  ? "python_waveforms"
                                                    : "python";
    NodeSpec out = spec;
    out.options.set("stage", Value::scalar(stage, spec.mark));
    return {std::move(out)};
  }

  Result<std::shared_ptr<const Waveform>> process(std::shared_ptr<const Waveform> in,
                                                  ItemContext& context) const override {
    auto made = waveforms(*in, true, context);
    if (!made) return std::move(made.error());
    return std::move(made->front());
  }
};

class PythonWaveforms final : public Calling<OneToMany<Waveform, Waveform>> {
 public:
  explicit PythonWaveforms(PythonOptions options) : Calling(std::move(options)) {}
  Result<Many> process(std::shared_ptr<const Waveform> in, ItemContext& context) const override {
    return waveforms(*in, false, context);
  }
};

class PythonUtterances final : public Calling<Transform<Waveform, Waveform>> {
 public:
  explicit PythonUtterances(PythonOptions options) : Calling(std::move(options)) {}

  Properties plan(const Properties& given, const Requirements&, PlanCheck& check) override {
    caller_.open(check);
    Properties out = given;
    out.set(property::kIsMarked, true);
    return out;
  }
  [[nodiscard]] StageResources resources() const override {
    StageResources out = caller_.resources();
    out.passes_on = true;
    return out;
  }
  [[nodiscard]] std::size_t output_bound(const SourceInfo&, std::size_t input) const override {
    return input;
  }

  Result<std::shared_ptr<const Waveform>> process(std::shared_ptr<const Waveform> in,
                                                  ItemContext& context) const override {
    auto made = called_with(*in, context);
    if (!made) return std::move(made.error());
    auto out = std::make_shared<Waveform>(*in);
    out->marked.clear();
    const std::span<const float> times = made->floats();
    for (std::size_t i = 0; i + 1 < times.size(); i += 2) {
      const auto at = [&](float seconds) {
        return std::llround(static_cast<double>(seconds) * in->sample_rate);
      };
      const Stretch s{at(times[i]), std::min<std::int64_t>(at(times[i + 1]), in->samples.count)};
      const std::int64_t from = out->marked.empty() ? 0 : out->marked.back().end;
      // Rounded up to frames it may end a little later; in samples, not seconds, much later.
      const bool is_beyond = at(times[i + 1]) - in->samples.count > in->sample_rate / 10;
      if (s.begin < from || s.end <= s.begin || is_beyond)
        return ItemError::failed(fmt::format(
            "the function gives an utterance from {:g} s to {:g} s; they come in order, without "
            "overlap, within the recording of {:g} s",
            times[i], times[i + 1],
            static_cast<double>(in->samples.count) / std::max(1, in->sample_rate)));
      out->marked.push_back(s);
    }
    return std::shared_ptr<const Waveform>(std::move(out));
  }
};

const RegisterStage<PythonWaveform, PythonOptions> register_python{
    "python", "Calls a function of Python with each recording.", true};
const RegisterStage<PythonWaveforms, PythonOptions> register_waveforms{
    "python_waveforms", "python with gives: waveforms.", true};
const RegisterStage<PythonUtterances, PythonOptions> register_utterances{
    "python_utterances", "python with gives: utterances.", true};

}  // namespace
}  // namespace melflow
