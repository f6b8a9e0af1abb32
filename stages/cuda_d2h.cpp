// cuda_d2h: an item is here until its rows are back in page-locked memory.
//
// In:  DeviceRows.
// Out: PinnedRows.

#include "pipeline/registry.h"
#include "stages/device/cuda_run.h"
#include "stages/device/phase_engine.h"

namespace melflow {
namespace {

class CudaD2h final : public Transform<DeviceRows, PinnedRows> {
 public:
  explicit CudaD2h(NoOptions) {}

  [[nodiscard]] StageTraits traits() const override {
    StageTraits t = Transform::traits();
    t.in_order = false;
    t.lends = true;
    return t;
  }

  Facts plan(const Facts& given, const Facts&, PlanCheck& check) override {
    run_ = given.get_object<CudaRun>(CudaRun::kFact);
    if (!run_) check.error("", "it takes what cuda_mel gives");
    return given;
  }
  [[nodiscard]] bool passes_on() const override { return true; }
  // More than there are lanes.
  [[nodiscard]] int default_concurrency() const override { return 64; }
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

const RegisterStage<CudaD2h, NoOptions> registered{
    "cuda_d2h", "Brings rows back from a graphics processor into page-locked memory."};

}  // namespace
}  // namespace melflow
