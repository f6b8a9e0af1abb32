// The options of the stages that call a function of Python, and what they do with its answer.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>

#include "pipeline/options/schema.h"
#include "pipeline/stage/run_context.h"
#include "pipeline/stage/stage_kinds.h"
#include "stages/length.h"
#include "stages/python/python_functions.h"
#include "stages/row_type.h"

namespace melflow {

enum class PythonTakes { waveform, rows };
enum class PythonGives { waveform, waveforms, rows, utterances };
template <>
struct EnumNames<PythonTakes> {
  static constexpr std::pair<const char*, PythonTakes> values[] = {
      {"waveform", PythonTakes::waveform}, {"rows", PythonTakes::rows}};
};
template <>
struct EnumNames<PythonGives> {
  static constexpr std::pair<const char*, PythonGives> values[] = {
      {"waveform", PythonGives::waveform},
      {"waveforms", PythonGives::waveforms},
      {"rows", PythonGives::rows},
      {"utterances", PythonGives::utterances}};
};

struct PythonOptions {
  std::string call;
  ValueMap arguments;
  PythonTakes takes = PythonTakes::waveform;
  PythonGives gives = PythonGives::waveform;
  std::optional<int> columns;
  std::optional<NumberType> dtype;  // of rows; not set: float32
  std::optional<Length> hop;
  double grows = 1;
  Bytes block{std::uint64_t{16} << 20};
  int processes = 0;
  std::optional<int> batch;
  std::optional<int> blocks;      // [samples]
  std::optional<double> timeout;  // [s] not set: kPatience
  bool deterministic = true;

  void describe(Schema& s);
};

/// Takes what a function gave for an item; its notes become warnings. An error where it gave
/// nothing.
Result<PythonResults> results_of(PythonAnswer answer, const ItemContext& context,
                                 std::size_t part = 0);

/// The beginning of the names of the functions of onnx and vad, and the function of onnx.
inline constexpr const char* kModels = "melflow.models:";
inline constexpr const char* kOnnxFunction = "melflow.models:Onnx";

/// A function that a stage calls: opened by plan(), called by process(). In a pass of a training
/// program its first call is made twice, with a warning about the run where the results differ.
class PythonCaller {
 public:
  explicit PythonCaller(PythonOptions options) : options_(std::move(options)) {}

  [[nodiscard]] const PythonOptions& options() const { return options_; }
  /// Imports the function; an error in `check` where that is not possible.
  void open(PlanCheck& check);
  /// Sets info.hop and info.type by the options; an error in `check` where `hop` needs a sample
  /// rate that is not known.
  void describe_rows(FeatureInfo& info, PlanCheck& check) const;
  /// All options that count, and the hash of the code.
  [[nodiscard]] Value settings() const;
  [[nodiscard]] StageResources resources() const;
  void start(RunContext& run);
  /// Calls the function for each of these arrays.
  [[nodiscard]] std::vector<PythonAnswer> call(std::vector<PythonArray> arrays,
                                               int sample_rate) const;
  [[nodiscard]] std::unique_ptr<PythonStream> open_stream() const;
  /// `lock`: how often Python's lock was held; `calls`: what those in other processes or batches
  /// took.
  [[nodiscard]] std::vector<std::pair<std::string, Value>> summary() const;

 private:
  PythonOptions options_;
  std::shared_ptr<const PythonFunction> function_;
  mutable std::atomic<bool> calls_twice_ = false;
  std::function<void()> warn_of_other_results_;
};

}  // namespace melflow
