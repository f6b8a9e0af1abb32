// onnx and vad: models as nodes. Each becomes a node of the stage python that calls
// melflow/models.py.

#include <algorithm>
#include <stdexcept>

#include "pipeline/stage/registry.h"
#include "stages/items.h"
#include "stages/length.h"
#include "stages/python/python_options.h"

namespace melflow {
namespace {

// A stage whose nodes are replaced before the plan.
template <class Out, class Options>
class Replaced : public Transform<Waveform, Out> {
 public:
  explicit Replaced(const Options&) {}
  static constexpr const char* kFeatureStage = "python";
  static constexpr bool kRunsCode = true;
  Result<std::shared_ptr<const Out>> process(std::shared_ptr<const Waveform>,
                                             ItemContext&) const override {
    throw std::logic_error("a node that was not replaced");
  }
};

// Makes a node of the stage `stage` that calls `call`, with the options of `spec`; those that
// `arguments` names become arguments of the function.
std::vector<NodeSpec> calling_node(const NodeSpec& spec, const char* stage, const char* gives,
                                   const char* call,
                                   std::initializer_list<std::string_view> arguments) {
  NodeSpec out{spec.name, spec.mark, Value::map({}, spec.mark)};
  out.options.set("stage", Value::scalar(stage, spec.mark));
  out.options.set("gives", Value::scalar(gives, spec.mark));
  out.options.set("call", Value::scalar(call, spec.mark));
  const Value* stored = spec.options.find("arguments");  // of the node that an earlier run made
  Value given = stored != nullptr && stored->is_map() ? *stored : Value::map({}, spec.mark);
  for (const Value::Entry& e : spec.options.entries())
    if (std::find(arguments.begin(), arguments.end(), e.key) != arguments.end()) {
      if (!e.value.is_null()) given.set(e.key, e.value);
    } else if (e.key != "stage" && e.key != "arguments") {
      out.options.set(e.key == "input" ? "takes" : e.key, e.value);
    }
  out.options.set("arguments", std::move(given));
  return {std::move(out)};
}

struct OnnxOptions {
  std::string model;
  PythonTakes input = PythonTakes::waveform;
  std::optional<int> columns, frames;
  std::optional<NumberType> dtype;
  std::optional<std::string> output;
  std::optional<Length> hop;
  int at_once = 16, processes = 0;
  std::optional<int> batch;

  void describe(Schema& s) {
    s.field("model", model, "the path of the model (.onnx), with one input of float32; required");
    s.field("input", input, "what the model gets: the samples of a recording, or its rows");
    s.field("columns", columns, "the number of values that the model gives for a row; required")
        .range(1, 1 << 24);
    s.field("dtype", dtype,
            "number type of the rows; int8, uint8, int16, uint16, int32, int64: the output holds "
            "integers (tokens, codes, units), which are stored and delivered as they are; not set: "
            "float32");
    s.field("output", output, "the output of the model that becomes rows; not set: its first one");
    s.field("hop", hop,
            "the time from one row to the next, where rows are put beside others (concat); not "
            "set: that of the rows that the model gets, if any")
        .range(1, 1 << 30);
    s.field("frames", frames,
            "cuts the samples or rows into pieces of so many, each of which gives a row; the last "
            "one is padded with zeros; not set: the model gets all of them at once")
        .range(1, 1 << 24);
    s.field("at_once", at_once,
            "with frames: the number of pieces in a call of the model, whatever the length of the "
            "recording, so that rows do not depend on it")
        .range(1, 4096);
    s.field("batch", batch,
            "calls the model with so many recordings of one shape, along the first axis of its "
            "input; not set: with one")
        .range(1, 4096);
    s.field("processes", processes,
            "the number of other processes that call the model; 0: threads of this process")
        .range(0, 256)
        .tuning();
  }
};

struct Onnx final : Replaced<MelBatch, OnnxOptions> {
  using Replaced::Replaced;
  static std::vector<NodeSpec> expand(const NodeSpec& spec) {
    const Value* input = spec.options.find("input");
    const bool of_rows = input != nullptr && input->text() == "rows";
    return calling_node(spec, of_rows ? "python_rows" : "python_features", "rows",
                        "melflow.models:Onnx", {"model", "output", "frames", "at_once"});
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

struct Vad final : Replaced<Waveform, VadOptions> {
  using Replaced::Replaced;
  static std::vector<NodeSpec> expand(const NodeSpec& spec) {
    return calling_node(spec, "python_utterances", "utterances", "melflow.models:Vad",
                        {"threshold", "min_speech", "min_silence", "pad", "max_speech", "model"});
  }
};

const RegisterStage<Onnx, OnnxOptions> register_onnx{
    "onnx", "Calls an ONNX model with each recording, by onnxruntime of Python.", true};
const RegisterStage<Vad, VadOptions> register_vad{
    "vad",
    "Marks speech, by the model of the Python package silero-vad; segments_by makes a result of "
    "each stretch.",
    true};

}  // namespace
}  // namespace melflow
