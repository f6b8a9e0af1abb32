// python: calls a function of Python with each recording.
//
// In:  Waveform or MelBatch, of whole recordings.
// Out: Waveform, also several for a recording; Waveform with marked stretches; or MelBatch.
//
// A node of this stage becomes one of five, by what it takes and gives.

#include <algorithm>
#include <cmath>
#include <cstring>

#include <fmt/format.h>

#include "pipeline/base/cpu.h"
#include "pipeline/stage/registry.h"
#include "stages/facts.h"
#include "stages/items.h"
#include "stages/python/python_options.h"
#include "stages/row_type.h"

namespace melflow {
namespace {

std::optional<ItemError> longer_than_a_block(bool is_whole, std::size_t values,
                                             const PythonOptions& options) {
  if (is_whole && values * sizeof(float) <= options.block.count) return std::nullopt;
  return ItemError::failed(
      "is longer than what the function takes at once; raise `block` of this node, or cut it "
      "before");
}

// The samples as float32; `copy` has their memory where they had to be converted.
const float* floats_of(const Samples& in, std::vector<float>& copy) {
  if (in.type == SampleType::float32) return reinterpret_cast<const float*>(in.data);
  copy.resize(static_cast<std::size_t>(in.count));
  to_float(in.data, copy.size(), NumberType::int16, copy.data());
  return copy.data();
}

std::shared_ptr<Buffer> leased(const std::vector<float>& values, const ItemContext& context) {
  auto out = std::make_shared<Buffer>(
      context.run().pool.lease(std::max<std::size_t>(1, values.size()) * sizeof(float)));
  std::memcpy(out->data(), values.data(), values.size() * sizeof(float));
  return out;
}

Requirements whole_recordings(const Requirements& below, const PythonOptions& options) {
  Requirements above = below;
  above.erase(requirement::kBlockMultiple);
  above.set(
      requirement::kWholeBlock,
      std::max<std::uint64_t>(options.block.count, below.get_or(requirement::kWholeBlock, 0)));
  return above;
}

// The most bytes that a function gives for an input of so many bytes, which may be of int16.
std::size_t grown(std::size_t input, const PythonOptions& options) {
  const auto taken = static_cast<double>(std::min<std::uint64_t>(2 * input, options.block.count));
  return BufferPool::rounded(static_cast<std::size_t>(taken * options.grows) + 4096);
}

// The error where results have more values than the memory that is reserved for them.
std::optional<ItemError> too_many(std::size_t given, std::size_t taken, double grows) {
  if (static_cast<double>(given) <= grows * static_cast<double>(taken) + 512) return std::nullopt;
  return ItemError::failed(fmt::format(
      "the function gives {:.2f} times the values that it gets, and grows is {:g}; raise it",
      static_cast<double>(given) / static_cast<double>(std::max<std::size_t>(1, taken)), grows));
}

// What both stages that give samples do.
class WaveformCaller {
 public:
  explicit WaveformCaller(PythonOptions options) : caller(std::move(options)) {}

  Properties plan(const Properties& given, PlanCheck& check) {
    caller.open(check);
    Properties out = given;
    out.erase(property::kIsMarked);
    out.erase(property::kSamplesOfFile);
    return out;
  }
  [[nodiscard]] Result<std::vector<std::shared_ptr<const Waveform>>> waveforms(
      const Waveform& in, ItemContext& context) const {
    const auto count = static_cast<std::size_t>(in.samples.count);
    if (auto error = longer_than_a_block(in.first && in.last, count, caller.options()))
      return std::move(*error);
    std::vector<float> copy;
    auto made = caller.call(floats_of(in.samples, copy), {count}, in.sample_rate, context);
    if (!made) return std::move(made.error());
    std::size_t given = 0;
    for (const PythonArray& result : *made) given += result.values.size();
    if (auto error = too_many(given, count, caller.options().grows)) return std::move(*error);
    std::vector<float> all;  // in one piece: small ones would take more than their size
    all.reserve(given);
    for (const PythonArray& result : *made)
      all.insert(all.end(), result.values.begin(), result.values.end());
    const std::shared_ptr<Buffer> samples = leased(all, context);
    std::vector<std::shared_ptr<const Waveform>> out;
    std::size_t at = 0;
    for (const PythonArray& result : *made) {
      auto waveform = std::make_shared<Waveform>(in);
      waveform->marked.clear();
      waveform->samples = {samples, samples->data() + at * sizeof(float),
                           static_cast<std::int64_t>(result.values.size()), SampleType::float32};
      at += result.values.size();
      out.push_back(std::move(waveform));
    }
    return out;
  }

  PythonCaller caller;
};

class PythonWaveform final : public Transform<Waveform, Waveform> {
 public:
  explicit PythonWaveform(PythonOptions options) : of_(std::move(options)) {}
  static constexpr const char* kFeatureStage = "python";
  static constexpr bool kRunsCode = true;

  static std::vector<NodeSpec> expand(const NodeSpec& spec) {
    const auto is = [&spec](const char* option, std::string_view wanted) {
      const Value* value = spec.options.find(option);
      return value != nullptr && value->text() == wanted;
    };
    const char* stage = is("takes", "rows")         ? "python_rows"
                        : is("gives", "rows")       ? "python_features"
                        : is("gives", "utterances") ? "python_utterances"
                        : is("gives", "waveforms")  ? "python_waveforms"
                                                    : "python";
    NodeSpec out = spec;
    out.options.set("stage", Value::scalar(stage, spec.mark));
    return {std::move(out)};
  }

  [[nodiscard]] Requirements require(const Requirements& below) const override {
    return whole_recordings(below, of_.caller.options());
  }
  Properties plan(const Properties& given, const Requirements&, PlanCheck& check) override {
    return of_.plan(given, check);
  }
  [[nodiscard]] StageResources resources() const override { return of_.caller.resources(); }
  [[nodiscard]] std::optional<Value> settings() const override { return of_.caller.settings(); }
  [[nodiscard]] std::size_t output_bound(const SourceInfo&, std::size_t input) const override {
    return grown(input, of_.caller.options());
  }

  Result<std::shared_ptr<const Waveform>> process(std::shared_ptr<const Waveform> in,
                                                  ItemContext& context) const override {
    auto made = of_.waveforms(*in, context);
    if (!made) return std::move(made.error());
    if (made->size() != 1)
      return ItemError::failed(fmt::format(
          "the function gives {} arrays of samples; give one, or write gives: waveforms",
          made->size()));
    return std::move(made->front());
  }

 private:
  WaveformCaller of_;
};

class PythonWaveforms final : public OneToMany<Waveform, Waveform> {
 public:
  explicit PythonWaveforms(PythonOptions options) : of_(std::move(options)) {}
  static constexpr const char* kFeatureStage = "python";
  static constexpr bool kRunsCode = true;

  [[nodiscard]] Requirements require(const Requirements& below) const override {
    return whole_recordings(below, of_.caller.options());
  }
  Properties plan(const Properties& given, const Requirements&, PlanCheck& check) override {
    return of_.plan(given, check);
  }
  [[nodiscard]] StageResources resources() const override { return of_.caller.resources(); }
  [[nodiscard]] std::optional<Value> settings() const override { return of_.caller.settings(); }
  [[nodiscard]] std::size_t output_bound(const SourceInfo&, std::size_t input) const override {
    return grown(input, of_.caller.options());
  }
  Result<Many> process(std::shared_ptr<const Waveform> in, ItemContext& context) const override {
    return of_.waveforms(*in, context);
  }

 private:
  WaveformCaller of_;
};

class PythonUtterances : public Transform<Waveform, Waveform> {
 public:
  explicit PythonUtterances(PythonOptions options) : caller_(std::move(options)) {}
  static constexpr const char* kFeatureStage = "python";
  static constexpr bool kRunsCode = true;

  [[nodiscard]] Requirements require(const Requirements& below) const override {
    return whole_recordings(below, caller_.options());
  }
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
  [[nodiscard]] std::optional<Value> settings() const override { return caller_.settings(); }
  [[nodiscard]] std::size_t output_bound(const SourceInfo&, std::size_t input) const override {
    return input;
  }

  Result<std::shared_ptr<const Waveform>> process(std::shared_ptr<const Waveform> in,
                                                  ItemContext& context) const override {
    const auto count = static_cast<std::size_t>(in->samples.count);
    if (auto error = longer_than_a_block(in->first && in->last, count, caller_.options()))
      return std::move(*error);
    std::vector<float> copy;
    auto made = caller_.call(floats_of(in->samples, copy), {count}, in->sample_rate, context);
    if (!made) return std::move(made.error());
    auto out = std::make_shared<Waveform>(*in);
    out->marked.clear();
    const std::vector<float>& times = made->empty() ? kNone : made->front().values;
    for (std::size_t i = 0; i + 1 < times.size(); i += 2) {
      const auto at = [&](float seconds) {
        return std::llround(static_cast<double>(seconds) * in->sample_rate);
      };
      const Stretch s{at(times[i]), std::min<std::int64_t>(at(times[i + 1]), in->samples.count)};
      const std::int64_t from = out->marked.empty() ? 0 : out->marked.back().end;
      if (s.begin < from || s.end <= s.begin)
        return ItemError::failed(fmt::format(
            "the function gives an utterance from {:g} s to {:g} s; they come in order, without "
            "overlap, within the recording of {:g} s",
            times[i], times[i + 1],
            static_cast<double>(in->samples.count) / std::max(1, in->sample_rate)));
      out->marked.push_back(s);
    }
    return std::shared_ptr<const Waveform>(std::move(out));
  }

 private:
  static inline const std::vector<float> kNone;
  PythonCaller caller_;
};

// Makes rows of the answer of a function that was called with a recording.
Result<std::shared_ptr<const MelPart>> rows_of(const PythonArray& answer, const FeatureInfo& info,
                                               const FileAudio& file, ItemContext& context) {
  const std::size_t columns = info.values_per_row();
  std::size_t row = 1;
  for (std::size_t i = 1; i < answer.shape.size(); ++i) row *= answer.shape[i];
  if (answer.shape.size() < 2 || row != columns)
    return ItemError::failed(
        fmt::format("the function gives rows of {} values, and columns is {}; set columns: {}", row,
                    columns, row));
  auto out = std::make_shared<MelPart>();
  out->row_count = static_cast<std::int64_t>(answer.shape.front());
  out->file = file;
  std::shared_ptr<Buffer> data = leased(answer.values, context);
  if (auto error = unstorable(data->as<float>(), 0, out->row_count, info, NumberType::float32))
    return std::move(*error);
  out->data = std::move(data);
  return std::shared_ptr<const MelPart>(std::move(out));
}

class PythonFeatures : public Transform<Waveform, MelBatch> {
 public:
  explicit PythonFeatures(PythonOptions options) : caller_(std::move(options)) {}
  static constexpr const char* kFeatureStage = "python";
  static constexpr bool kRunsCode = true;

  [[nodiscard]] Requirements require(const Requirements& below) const override {
    Requirements above = whole_recordings(below, caller_.options());
    above.erase(requirement::kRowTypes);  // there are no rows before this stage
    return above;
  }
  Properties plan(const Properties& given, const Requirements&, PlanCheck& check) override {
    caller_.open(check);
    auto info = std::make_shared<FeatureInfo>();
    if (!caller_.options().columns)
      check.error("columns", "is needed where samples become rows: the number of values of a row");
    info->name = kConcatRows;
    info->axis = "column";
    info->columns = caller_.options().columns.value_or(1);
    info->sample_rate = static_cast<int>(given.get_or(property::kSampleRate, 0));
    *info->computed_by = {"python", "any", true};
    info_ = info;
    Properties out = given;
    out.set(property::kFeatures, info_);
    return out;
  }
  [[nodiscard]] StageResources resources() const override { return caller_.resources(); }
  [[nodiscard]] std::optional<Value> settings() const override { return caller_.settings(); }
  [[nodiscard]] std::size_t output_bound(const SourceInfo&, std::size_t input) const override {
    return grown(input, caller_.options()) +
           grown(info_->values_per_row() * sizeof(float), caller_.options());
  }

  Result<std::shared_ptr<const MelBatch>> process(std::shared_ptr<const Waveform> in,
                                                  ItemContext& context) const override {
    const auto count = static_cast<std::size_t>(in->samples.count);
    if (auto error = longer_than_a_block(in->first && in->last, count, caller_.options()))
      return std::move(*error);
    std::vector<float> copy;
    auto made = caller_.call(floats_of(in->samples, copy), {count}, in->sample_rate, context);
    if (!made) return std::move(made.error());
    if (made->size() != 1)
      return ItemError::failed(
          fmt::format("the function gives {} arrays of rows; give one", made->size()));
    if (auto error = too_many(made->front().values.size(), count + info_->values_per_row(),
                              caller_.options().grows))
      return std::move(*error);
    auto part = rows_of(made->front(), *info_, in->file, context);
    if (!part) return std::move(part.error());
    auto out = std::make_shared<MelBatch>();
    out->info = info_;
    out->parts.push_back(std::move(*part));
    return std::shared_ptr<const MelBatch>(std::move(out));
  }

 private:
  PythonCaller caller_;
  std::shared_ptr<const FeatureInfo> info_;
};

class PythonRows final : public Transform<MelBatch, MelBatch> {
 public:
  explicit PythonRows(PythonOptions options) : caller_(std::move(options)) {
    traits_.order = BlockOrder::any;
  }
  static constexpr const char* kFeatureStage = "python";
  static constexpr bool kRunsCode = true;

  [[nodiscard]] Requirements require(const Requirements& below) const override {
    Requirements above = whole_recordings(below, caller_.options());
    require_rows(above, NumberType::float32);
    return above;
  }
  Properties plan(const Properties& given, const Requirements&, PlanCheck& check) override {
    caller_.open(check);
    if (caller_.options().gives != PythonGives::rows)
      check.error("gives", "with takes: rows it gives rows; write gives: rows");
    in_ = given.get_or(property::kFeatures, nullptr);
    if (!in_) return given;  // the node before reports an error of its own
    auto out = std::make_shared<FeatureInfo>(*in_);
    if (const auto& columns = caller_.options().columns) {
      out->name = kConcatRows;
      out->axis = "column";
      out->columns = *columns;
      out->frames = 0;
      out->column_hz.clear();
      out->groups.clear();
      out->energy_column = -1;
    }
    out->is_full_scale = false;
    out_ = out;
    Properties properties = given;
    properties.set(property::kFeatures, out_);
    return properties;
  }
  [[nodiscard]] StageResources resources() const override { return caller_.resources(); }
  [[nodiscard]] std::optional<Value> settings() const override { return caller_.settings(); }
  [[nodiscard]] std::size_t output_bound(const SourceInfo&, std::size_t input) const override {
    return grown(input, caller_.options()) +
           grown(out_->values_per_row() * sizeof(float), caller_.options());
  }

  Result<std::shared_ptr<const MelBatch>> process(std::shared_ptr<const MelBatch> in,
                                                  ItemContext& context) const override {
    auto out = std::make_shared<MelBatch>();
    out->info = out_;
    out->parts.resize(in->parts.size());
    for (std::size_t i = 0; i < in->parts.size(); ++i) {
      if (!in->parts[i] || context.is_lost(i)) continue;
      auto part = changed(*in->parts[i], context, i);
      if (part)
        out->parts[i] = std::move(*part);
      else
        context.fail(i, std::move(part.error()));
    }
    return std::shared_ptr<const MelBatch>(std::move(out));
  }

 private:
  Result<std::shared_ptr<const MelPart>> changed(const MelPart& in, ItemContext& context,
                                                 std::size_t i) const {
    const std::size_t taken = static_cast<std::size_t>(in.row_count) * in_->values_per_row();
    if (auto error = longer_than_a_block(in.is_whole() && !in.pending, taken, caller_.options()))
      return std::move(*error);
    std::vector<std::size_t> shape{static_cast<std::size_t>(in.row_count)};
    if (in_->frames > 0) shape.push_back(static_cast<std::size_t>(in_->frames));
    shape.push_back(static_cast<std::size_t>(in_->columns));
    auto made = caller_.call(in.values(), shape, 0, context, i);
    if (!made) return std::move(made.error());
    if (made->size() != 1)
      return ItemError::failed(
          fmt::format("the function gives {} arrays of rows; give one", made->size()));
    if (auto error = too_many(made->front().values.size(), taken + out_->values_per_row(),
                              caller_.options().grows))
      return std::move(*error);
    return rows_of(made->front(), *out_, in.file, context);
  }

  PythonCaller caller_;
  std::shared_ptr<const FeatureInfo> in_, out_;
};

// Makes a node of the stage `stage` that calls `call`, with the options of `spec`; those that
// `arguments` names become arguments of the function.
std::vector<NodeSpec> calling_node(const NodeSpec& spec, const char* stage, const char* call,
                                   std::initializer_list<std::string_view> arguments) {
  NodeSpec out{spec.name, spec.mark, Value::map({}, spec.mark)};
  out.options.set("stage", Value::scalar(stage, spec.mark));
  out.options.set("call", Value::scalar(call, spec.mark));
  Value given = Value::map({}, spec.mark);
  for (const Value::Entry& e : spec.options.entries())
    if (std::find(arguments.begin(), arguments.end(), e.key) != arguments.end()) {
      if (!e.value.is_null()) given.set(e.key, e.value);
    } else if (e.key != "stage") {
      out.options.set(e.key == "input" ? "takes" : e.key, e.value);
    }
  out.options.set("arguments", std::move(given));
  return {std::move(out)};
}

struct OnnxOptions {
  std::string model;
  PythonTakes input = PythonTakes::waveform;
  std::optional<int> columns, frames;
  std::optional<std::string> output;
  int at_once = 16, processes = 0;

  void describe(Schema& s) {
    s.field("model", model, "the path of the model (.onnx), with one input of float32; required");
    s.field("input", input, "what the model gets: the samples of a recording, or its rows");
    s.field("columns", columns, "the number of values that the model gives for a row; required")
        .range(1, 1 << 24);
    s.field("output", output, "the output of the model that becomes rows; not set: its first one");
    s.field("frames", frames,
            "cuts the samples or rows into pieces of so many, each of which gives a row; the last "
            "one is padded with zeros; not set: the model gets all of them at once")
        .range(1, 1 << 24);
    s.field("at_once", at_once,
            "with frames: the number of pieces in a call of the model, whatever the length of the "
            "recording, so that rows do not depend on it")
        .range(1, 4096);
    s.field("processes", processes,
            "the number of other processes that call the model; 0: threads of this process")
        .range(0, 256)
        .tuning();
  }
};

// Becomes a node of the stage python.
class Onnx final : public PythonFeatures {
 public:
  explicit Onnx(OnnxOptions) : PythonFeatures(PythonOptions{}) {}
  static std::vector<NodeSpec> expand(const NodeSpec& spec) {
    const Value* input = spec.options.find("input");
    const bool of_rows = input != nullptr && input->text() == "rows";
    std::vector<NodeSpec> out =
        calling_node(spec, of_rows ? "python_rows" : "python_features", "melflow.models:Onnx",
                     {"model", "output", "frames", "at_once"});
    out.front().options.set("gives", Value::scalar("rows", spec.mark));
    return out;
  }
};

struct VadOptions {
  double threshold = 0.5;
  double min_speech = 0.25, min_silence = 0.1, pad = 0.03;
  std::optional<double> max_speech;
  std::optional<std::string> model;
  int processes = 0;

  void describe(Schema& s) {
    s.field("threshold", threshold,
            "probability at which speech begins; it ends where it is below threshold - 0.15")
        .range(0.01, 0.99);
    s.field("min_speech", min_speech, "shorter speech is left out [s]").range(0, 3600);
    s.field("min_silence", min_silence, "shorter silence is part of speech [s]").range(0, 3600);
    s.field("pad", pad, "so much before and after speech belongs to it [s]").range(0, 3600);
    s.field("max_speech", max_speech,
            "longer speech is cut at its longest silence [s]; not set: no limit")
        .range(0.5, 1e6);
    s.field("model", model,
            "the path of silero_vad_16k_sequence.onnx; not set: that of the package silero-vad");
    s.field("processes", processes,
            "the number of other processes that call the model; 0: threads of this process")
        .range(0, 256)
        .tuning();
  }
};

// Becomes a node of the stage python.
class Vad final : public PythonUtterances {
 public:
  explicit Vad(VadOptions) : PythonUtterances(PythonOptions{}) {}
  static std::vector<NodeSpec> expand(const NodeSpec& spec) {
    std::vector<NodeSpec> out =
        calling_node(spec, "python_utterances", "melflow.models:Vad",
                     {"threshold", "min_speech", "min_silence", "pad", "max_speech", "model"});
    out.front().options.set("gives", Value::scalar("utterances", spec.mark));
    return out;
  }
};

const RegisterStage<Onnx, OnnxOptions> register_onnx{
    "onnx", "Calls an ONNX model with each recording, by onnxruntime of Python.", true};
const RegisterStage<Vad, VadOptions> register_vad{
    "vad",
    "Marks speech, by the model of the Python package silero-vad; segments_by makes a result of "
    "each stretch.",
    true};
const RegisterStage<PythonWaveform, PythonOptions> register_python{
    "python", "Calls a function of Python with each recording.", true};
const RegisterStage<PythonWaveforms, PythonOptions> register_waveforms{
    "python_waveforms", "python with gives: waveforms.", true};
const RegisterStage<PythonUtterances, PythonOptions> register_utterances{
    "python_utterances", "python with gives: utterances.", true};
const RegisterStage<PythonFeatures, PythonOptions> register_features{
    "python_features", "python with gives: rows.", true};
const RegisterStage<PythonRows, PythonOptions> register_rows{"python_rows",
                                                             "python with takes: rows.", true};

}  // namespace
}  // namespace melflow
