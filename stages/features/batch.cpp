// batch: blocks of several files as one item, so that what comes next is done for many at once.
//
// In:  Windows.
// Out: Batch. Which files come together never changes a row.

#include "pipeline/registry.h"
#include "stages/items.h"
#include "stages/other_names.h"

namespace melflow {
namespace {

struct BatchOptions {
  int files = 8;
  Bytes bytes{8 * 1024 * 1024};

  void describe(Schema& s) {
    s.other_names(other_names::of_batch());
    s.field("files", files, "largest number of files, or of blocks of long files, in a batch")
        .range(1, 65536)
        .tuning();
    s.field("bytes", bytes,
            "total size of the samples at which a batch is full, even with fewer files")
        .range(4096, 4.0e9)
        .tuning();
  }
};

class BatchStage final : public Combine<Windows, Batch> {
 public:
  explicit BatchStage(BatchOptions options) : options_(options) {}

  Result<bool> push(std::shared_ptr<const Windows> in, ItemContext&) override {
    if (!batch_) batch_ = std::make_shared<Batch>();
    bytes_ += in->bytes();
    batch_->parts.push_back(std::move(in));
    return batch_->parts.size() >= static_cast<std::size_t>(options_.files) ||
           bytes_ >= options_.bytes.count;
  }

  Result<std::shared_ptr<const Batch>> pull(ItemContext&) override {
    bytes_ = 0;
    return std::shared_ptr<const Batch>(std::move(batch_));
  }

  [[nodiscard]] std::size_t most_items() const override {
    return static_cast<std::size_t>(options_.files);
  }

  // The samples stay where they are.
  [[nodiscard]] StageResources resources() const override { return {.passes_on = true}; }

 private:
  BatchOptions options_;
  std::shared_ptr<Batch> batch_;
  std::size_t bytes_ = 0;
};

const RegisterStage<BatchStage, BatchOptions> register_batch_stage{
    "batch", "Collects files so that the next stage works on several at once."};

}  // namespace
}  // namespace melflow
