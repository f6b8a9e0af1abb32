// batch: joins blocks of several files to one item, so that later stages process many at once.
//
// In:  Windows.
// Out: Batch. The grouping of files never changes a row.

#include <algorithm>
#include <cstdint>
#include <optional>

#include <fmt/format.h>

#include "pipeline/stage/registry.h"
#include "stages/facts.h"
#include "stages/items.h"
#include "stages/other_names.h"

namespace melflow {
namespace {

struct BatchOptions {
  static constexpr int kUsualFiles = 8;
  static constexpr double kMostBytes = 4.0e9;
  int files = kUsualFiles;
  std::optional<Bytes> bytes;

  void describe(Schema& s) {
    s.other_names(other_names::of_batch());
    s.field("files", files, "largest number of files, or of blocks of long files, in a batch")
        .range(1, 65536)
        .tuning();
    s.field(
         "bytes", bytes,
         "total size of the samples at which a batch is full, even with fewer files; not set: 8MiB")
        .range(4096, kMostBytes)
        .tuning();
  }
};

class BatchStage final : public Combine<Windows, Batch> {
 public:
  static constexpr bool kIsPutIn = true;
  explicit BatchStage(BatchOptions options)
      : options_(options), full_({options.files, options.bytes.value_or(Bytes{8 << 20}).count}) {}

  Properties plan(const Properties& given, const Requirements&, PlanCheck& check) override {
    const std::int64_t samples = given.get_or(property::kSamplesOfFile, std::int64_t{0});
    // Counts 16-bit samples, the smallest.
    const auto each = static_cast<std::size_t>(samples) * size_of(SampleType::int16);
    if (is_file_count_given() && each > 0 &&
        each * (static_cast<std::size_t>(full_.files) - 1) >= full_.bytes) {
      is_noted_ = true;
      check.note("files", too_few((full_.bytes + each - 1) / each, each));
    }
    Properties out = given;
    out.set(property::kFullBatch, full_);
    return out;
  }

  Result<bool> push(std::shared_ptr<const Windows> in, ItemContext&) override {
    if (!batch_) batch_ = std::make_shared<Batch>();
    bytes_ += in->bytes();
    batch_->parts.push_back(std::move(in));
    const bool has_all = batch_->parts.size() >= static_cast<std::size_t>(full_.files);
    has_had_all_ = has_had_all_ || has_all;
    if (has_all || bytes_ < full_.bytes) return has_all;
    most_files_ = std::max(most_files_, batch_->parts.size());
    most_bytes_ = std::max(most_bytes_, bytes_ / batch_->parts.size());
    return true;
  }

  Result<std::shared_ptr<const Batch>> pull(ItemContext&) override {
    bytes_ = 0;
    return std::shared_ptr<const Batch>(std::move(batch_));
  }

  // Reports `files` if no batch held that many.
  [[nodiscard]] std::string not_kept() const override {
    if (!is_file_count_given() || is_noted_ || has_had_all_ || most_files_ == 0) return {};
    return "files: " + too_few(most_files_, most_bytes_);
  }

  [[nodiscard]] std::size_t most_items() const override {
    return static_cast<std::size_t>(options_.files);
  }

  // The samples are not copied.
  [[nodiscard]] StageResources resources() const override { return {.passes_on = true}; }

 private:
  // Only without a size, which would mean that either limit may come first.
  [[nodiscard]] bool is_file_count_given() const {
    return options_.files != BatchOptions::kUsualFiles && !options_.bytes;
  }
  // Text for the case that only `most` files of `each` bytes fit into a batch.
  [[nodiscard]] std::string too_few(std::size_t most, std::size_t each) const {
    constexpr std::size_t kMiB = std::size_t{1} << 20;
    const std::size_t wanted = (static_cast<std::size_t>(full_.files) * each + kMiB - 1) / kMiB;
    return fmt::format(
        "{} do not come together: bytes, which is 8MiB where it is not set, is reached with {} "
        "at most. Write {}",
        full_.files, most,
        static_cast<double>(wanted * kMiB) <= BatchOptions::kMostBytes
            ? fmt::format("bytes: {}MiB for so many, or a smaller number", wanted)
            : "a smaller number");
  }

  BatchOptions options_;
  FullBatch full_;
  bool is_noted_ = false;  // plan() reported it
  std::shared_ptr<Batch> batch_;
  std::size_t bytes_ = 0;
  // Whether a batch reached the number of files; the most files in any other batch, and the most
  // bytes that one of its files took.
  bool has_had_all_ = false;
  std::size_t most_files_ = 0, most_bytes_ = 0;
};

const RegisterStage<BatchStage, BatchOptions> register_batch_stage{
    "batch", "Collects files so that the next stage works on several at once."};

}  // namespace
}  // namespace melflow
