// cuda_h2d: packs a batch into page-locked memory and starts its processing on a device. The copies
// are in cuda/slot.cpp.
//
// In:  Batch.
// Out: DeviceBatch, whose samples may still be in flight.

#include <memory>

#include "pipeline/base/scratch_pool.h"
#include "pipeline/stage/registry.h"
#include "stages/device/cuda_run.h"
#include "stages/facts.h"

namespace melflow {
namespace {

class CudaH2d final : public Transform<Batch, DeviceBatch> {
 public:
  explicit CudaH2d(NoOptions) {
    traits_.order = BlockOrder::any;
    traits_.lends = true;
  }

  Properties plan(const Properties& given, const Requirements& required,
                  PlanCheck& check) override {
    run_ = required.get_or(requirement::kCudaRun, nullptr);
    if (!run_) check.error("", "what it gives has to go to cuda_mel");
    return given;
  }
  // It waits for a free slot, and copies to page-locked memory, which has a budget of its own.
  [[nodiscard]] StageResources resources() const override {
    return {.passes_on = true,
            .blocking = true,
            .default_concurrency = CudaRun::default_h2d_concurrency()};
  }
  // Called before the run with the largest possible block, for which slots are made.
  [[nodiscard]] std::size_t output_bound(const SourceInfo&, std::size_t input) const override {
    run_->note_block(input);
    return input;
  }

  void start(RunContext& run) override { run_->start(run); }

  Result<std::shared_ptr<const DeviceBatch>> process(std::shared_ptr<const Batch> in,
                                                     ItemContext& context) const override {
    auto out = std::make_shared<DeviceBatch>();
    if (cuda::SlotPool* slots = run_->slots(context.run())) {
      const auto scratch =
          scratch_.lease([this] { return std::make_unique<CudaBatch::Scratch>(run_->front()); });
      out->batch = std::make_shared<CudaBatch>(std::move(in), run_->front(), *slots,
                                               run_->split_devices(), *scratch, context);
    } else {
      out->batch = std::make_shared<CudaBatch>(std::move(in));
    }
    return std::shared_ptr<const DeviceBatch>(std::move(out));
  }

 private:
  std::shared_ptr<CudaRun> run_;
  mutable ScratchPool<CudaBatch::Scratch> scratch_;
};

const RegisterStage<CudaH2d, NoOptions> register_cuda_h2d{
    "cuda_h2d",
    "Packs a batch into page-locked memory and sends it to a CUDA device; mel inserts this stage."};

}  // namespace
}  // namespace melflow
