// cuda_accumulate: joins batches until they are large enough for a device.
//
// In:  Batch.
// Out: Batch. The grouping of files never changes a row.

#include "pipeline/stage/registry.h"
#include "stages/device/cuda_run.h"
#include "stages/facts.h"
#include "stages/items.h"

namespace melflow {
namespace {

class CudaAccumulate final : public Combine<Batch, Batch> {
 public:
  explicit CudaAccumulate(AccumulateOptions options) : options_(options) {}

  Properties plan(const Properties& given, const Requirements& required, PlanCheck&) override {
    run_ = required.get_or(requirement::kCudaRun, nullptr);
    return given;
  }

  Result<bool> push(std::shared_ptr<const Batch> in, ItemContext&) override {
    if (!batch_) batch_ = std::make_shared<Batch>();
    bytes_ += in->bytes();
    batch_->parts.insert(batch_->parts.end(), in->parts.begin(), in->parts.end());
    ++batches_;
    if (run_ && run_->is_on_host()) return bytes_ >= run_->host_batch_bytes();
    if (options_.batches) return batches_ >= *options_.batches;
    // Another batch of this size would be too much.
    return bytes_ + in->bytes() >
           options_.bytes.value_or(Bytes{AccumulateOptions::kUsualBytes}).count;
  }

  Result<std::shared_ptr<const Batch>> pull(ItemContext&) override {
    bytes_ = 0;
    batches_ = 0;
    return std::shared_ptr<const Batch>(std::move(batch_));
  }

  // The samples are not copied.
  [[nodiscard]] StageResources resources() const override { return {.passes_on = true}; }

 private:
  AccumulateOptions options_;
  std::shared_ptr<const CudaRun> run_;
  std::shared_ptr<Batch> batch_;
  std::size_t bytes_ = 0;
  int batches_ = 0;
};

// The queue is every node's own option.
struct Options : AccumulateOptions {
  void describe(Schema& s) { describe_size(s); }
};

const RegisterStage<CudaAccumulate, Options> register_cuda_accumulate{
    "cuda_accumulate",
    "Puts batches together until one is large enough for a CUDA device; mel inserts this stage."};

}  // namespace
}  // namespace melflow
