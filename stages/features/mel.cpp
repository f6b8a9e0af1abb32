// mel: computes mel spectrogram rows on the CPU.
//
// In:  Batch of Windows.
// Out: MelBatch, one part for each part of the batch, float32 [rows, frames, columns].

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "cuda/gpu.h"
#include "pipeline/stage/registry.h"
#include "stages/features/host_rows.h"
#include "stages/features/mel_backend.h"
#include "stages/features/mel_front.h"
#include "stages/length.h"
#include "stages/model_files/written_front_end.h"
#include "stages/passes_streams.h"

namespace melflow {
namespace {

class Mel final : public Transform<Batch, MelBatch>,
                  public TellsLength,
                  public PassesStreams,
                  public HasMelFront {
 public:
  explicit Mel(MelNodeOptions options)
      : front_(std::move(options.mel)), options_(std::move(options.backend)) {
    traits_.order = BlockOrder::any;  // every part has its row numbers
  }

  static std::vector<NodeSpec> write_out(const NodeSpec& spec, WritingOut& writing) {
    return written_front_end(spec, "mel", writing);
  }
  static std::vector<NodeSpec> expand(const NodeSpec& spec) { return mel_nodes(spec); }

  [[nodiscard]] Requirements require(const Requirements& below) const override {
    return front_.require(below);
  }
  Properties plan(const Properties& given, const Requirements&, PlanCheck& check) override {
    const MelBackend backend = options_.backend;
    melflow::check(options_, check);
    if (backend == MelBackend::automatic && options_.operands.type != cuda::NumberType::float32)
      check.note("operands",
                 fmt::format("{} has no effect: rows are computed on the CPU, in fp32 ({})",
                             OptionType<Operands>::echo(options_.operands).text(), why_not_cuda()));
    if (backend == MelBackend::cuda)
      check.error("backend", "cuda: " + cuda::gpus().why_none() + "; use backend: cpu, or auto");
    return front_.plan(
        given, check,
        {backend == MelBackend::cuda ? "cuda" : "cpu", std::string(chosen_instruction_set())});
  }
  void start(RunContext& run) override { front_.start(run); }
  // Reports the backend that auto chose, and why.
  [[nodiscard]] std::vector<std::pair<std::string, Value>> summary() const override {
    std::string text = "cpu, " + std::string(chosen_instruction_set());
    if (options_.backend == MelBackend::automatic)
      text += " (" + why_not_cuda() + ")";
    else if (cuda::gpus().may_have_some())
      text += " (there may be a CUDA device; backend: auto weighs whether it is worth it)";
    return {{"backend", Value::scalar(std::move(text))}};
  }
  [[nodiscard]] std::size_t output_bound(const SourceInfo&, std::size_t input) const override {
    return front_.output_bound(input, NumberType::float32);
  }
  [[nodiscard]] std::optional<Value> settings() const override { return front_.settings(); }
  [[nodiscard]] std::string why_no_stream() const override { return {}; }
  [[nodiscard]] const MelFront& front() const override { return front_; }
  [[nodiscard]] std::optional<RecordingLength> length_of(RecordingLength in) const override {
    if (in.sample_rate != front_.options().sample_rate) return std::nullopt;
    if (in.rows < 0) in.rows = front_.mel_plan()->frames(in.samples);
    return in;
  }

  Result<std::shared_ptr<const MelBatch>> process(std::shared_ptr<const Batch> in,
                                                  ItemContext& context) const override {
    return rows_.compute(*in, context);
  }

 private:
  [[nodiscard]] std::string why_not_cuda() const {
    if (!cuda::gpus().may_have_some()) return cuda::gpus().why_none();
    if (front_.options().precision == MelOptions::Precision::float64)
      return "precision: double, which no device has";
    return cuda::gpus().why_no_cufft();
  }

  MelFront front_;
  HostRows rows_{front_};
  MelBackendOptions options_;
};

const RegisterStage<Mel, MelNodeOptions> register_mel{
    "mel",
    "Mel spectrogram, with the options that users of librosa, torchaudio, Kaldi, Whisper, NeMo and "
    "others look for; docs/features.md lists what is not supported.",
    true};

}  // namespace
}  // namespace melflow
