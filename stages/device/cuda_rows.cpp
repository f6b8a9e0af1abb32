// cuda_rows: takes rows out of page-locked memory, finishes them as the stage mel does, and frees
// the slot for the next batch. Where there turned out to be no device, computes the rows here.
//
// In:  PinnedRows.
// Out: MelBatch, of 16-bit values where all readers ask for them.

#include "pipeline/stage/registry.h"
#include "stages/device/cuda_run.h"
#include "stages/facts.h"

namespace melflow {
namespace {

class CudaRows final : public Transform<PinnedRows, MelBatch> {
 public:
  explicit CudaRows(NoOptions) { traits_.order = BlockOrder::any; }

  Properties plan(const Properties& given, const Requirements&, PlanCheck& check) override {
    run_ = given.get_or(property::kCudaRun, nullptr);
    if (!run_) check.error("", "it takes what came from cuda_mel");
    return given;
  }
  [[nodiscard]] std::size_t output_bound(const SourceInfo&, std::size_t input) const override {
    // Rows computed by the processor are float32.
    const MelFront& front = run_->front();
    return front.output_bound(input, run_->is_automatic() ? NumberType::float32 : front.row_type());
  }

  Result<std::shared_ptr<const MelBatch>> process(std::shared_ptr<const PinnedRows> in,
                                                  ItemContext& context) const override {
    if (const Batch* batch = in->batch->on_host())
      return run_->host_rows().compute(*batch, context);
    return in->batch->rows(run_->front(), context);
  }

 private:
  std::shared_ptr<const CudaRun> run_;
};

const RegisterStage<CudaRows, NoOptions> register_cuda_rows{
    "cuda_rows",
    "Takes rows out of page-locked memory and applies ref: max, top_db and normalize of mel, which "
    "inserts this stage."};

}  // namespace
}  // namespace melflow
