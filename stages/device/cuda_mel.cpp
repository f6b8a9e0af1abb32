// cuda_mel: mel spectrogram rows on graphics processors. The work is given to the device by
// cuda_h2d, all of it at once; an item is here until its rows are back in page-locked memory.
//
// In:  DeviceBatch.
// Out: PinnedRows.

#include "cuda/gpu.h"
#include "pipeline/stage/registry.h"
#include "stages/device/cuda_run.h"
#include "stages/device/slot_engine.h"
#include "stages/facts.h"

namespace melflow {
namespace {

class CudaMel final : public Transform<DeviceBatch, PinnedRows>, public HasEngine {
 public:
  static constexpr const char* kFeatureStage = "mel";

  explicit CudaMel(const MelNodeOptions& options) : run_(std::make_shared<CudaRun>(options)) {
    traits_.order = BlockOrder::any;
    traits_.lends = true;
  }

  [[nodiscard]] Requirements require(const Requirements& below) const override {
    Requirements above = run_->front().require(below);
    above.set(requirement::kCudaRun, run_);
    return above;
  }
  Properties plan(const Properties& given, const Requirements& required,
                  PlanCheck& check) override {
    melflow::check(run_->options(), check);
    const bool has_devices = run_->is_automatic() || check_devices(check);
    Properties out = has_devices ? run_->plan(given, check) : given;
    if (has_devices && run_->front().is_planned()) {
      check_path(check);
      run_->front().give_required_rows(required);
    }
    out.set(property::kCudaRun, run_);  // for the nodes behind, or they would complain, too
    return out;
  }
  // Other operands are other features.
  [[nodiscard]] std::optional<Value> settings() const override {
    auto out = run_->front().settings();
    if (out && run_->options().operands.type != cuda::NumberType::float32)
      out->set("operands", OptionType<Operands>::echo(run_->options().operands));
    return out;
  }
  [[nodiscard]] StageResources resources() const override {
    return {.passes_on = true, .default_concurrency = 64};  // more than there are slots
  }
  [[nodiscard]] std::unique_ptr<Engine> engine(int) override {
    return std::make_unique<SlotEngine>();
  }

  void start(RunContext& run) override { run_->start(run); }
  void finish(RunContext&, Ending) override { run_->finish(); }
  [[nodiscard]] std::vector<std::pair<std::string, Value>> summary() const override {
    return run_->summary();
  }

  Result<std::shared_ptr<const PinnedRows>> process(std::shared_ptr<const DeviceBatch> in,
                                                    ItemContext&) const override {
    auto out = std::make_shared<PinnedRows>();
    out->batch = in->batch;
    return std::shared_ptr<const PinnedRows>(std::move(out));
  }

 private:
  // Where devices are asked for, they have to be there. Those of an automatic choice are looked for
  // while files are read.
  [[nodiscard]] bool check_devices(PlanCheck& check) const {
    if (cuda::gpus().list().empty()) {
      check.error("", "cuda: " + cuda::gpus().why_none() + "; use backend: cpu");
      return false;
    }
    std::vector<cuda::Opening::LeftOut> left_out;
    (void)CudaRun::choose(cuda::gpus(), run_->options(), left_out);
    const bool is_any = run_->options().devices.indices.empty();
    for (const auto& out : left_out)
      is_any ? check.warning("devices", out.why + "; it is not used")
             : check.error("devices", out.why);
    return is_any || left_out.empty();
  }

  void check_path(PlanCheck& check) const {
    const MelBackendOptions& o = run_->options();
    if (o.path == cuda::Path::fused && !run_->is_fused())
      check.error("path",
                  "there is no fused kernel for this n_fft, only for 256, 400, 512, 1024 and 2048; "
                  "use cufft or auto");
    else if (!run_->is_fused() && o.operands.type != cuda::NumberType::float32)
      check.error("operands", "only the fused kernel has others than fp32");
    if (run_->is_fused()) return;
    if (const std::string why = cuda::gpus().why_no_cufft(); !why.empty())
      check.error("path", why + "; or use backend: cpu");
  }

  std::shared_ptr<CudaRun> run_;
};

const RegisterStage<CudaMel, MelNodeOptions> register_cuda_mel{
    "cuda_mel",
    "Mel spectrogram on CUDA devices; write mel with backend: cuda or auto, which inserts this "
    "stage and the other cuda stages around it.",
    true};

}  // namespace
}  // namespace melflow
