// cuda_d2h: an item is here until its rows are back in page-locked memory.
//
// In:  DeviceRows.
// Out: PinnedRows.

#include "pipeline/stage/registry.h"
#include "stages/device/cuda_run.h"
#include "stages/device/phase_engine.h"
#include "stages/facts.h"

namespace melflow {
namespace {

class CudaD2h final : public Transform<DeviceRows, PinnedRows>, public HasEngine {
 public:
  explicit CudaD2h(NoOptions) {
    traits_.order = BlockOrder::any;
    traits_.lends = true;
  }

  Properties plan(const Properties& given, const Requirements&, PlanCheck& check) override {
    run_ = given.get_or(property::kCudaRun, nullptr);
    if (!run_) check.error("", "it takes what cuda_mel gives");
    return given;
  }
  [[nodiscard]] StageResources resources() const override {
    return {.passes_on = true, .default_concurrency = 64};  // more than there are slots
  }
  [[nodiscard]] std::unique_ptr<Engine> engine(int) override {
    return std::make_unique<PhaseEngine<DeviceRows, PinnedRows>>(cuda::Phase::copied_out);
  }

  Result<std::shared_ptr<const PinnedRows>> process(std::shared_ptr<const DeviceRows> in,
                                                    ItemContext&) const override {
    auto out = std::make_shared<PinnedRows>();
    out->batch = in->batch;
    return std::shared_ptr<const PinnedRows>(std::move(out));
  }

 private:
  std::shared_ptr<const CudaRun> run_;
};

const RegisterStage<CudaD2h, NoOptions> register_cuda_d2h{
    "cuda_d2h",
    "Brings rows back from a CUDA device into page-locked memory; mel inserts this stage."};

}  // namespace
}  // namespace melflow
