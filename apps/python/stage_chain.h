// The stages of a pipeline one after the other, for one recording at a time: what they give is what
// the pipeline writes for it.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "config/load.h"
#include "pipeline/stage_runner.h"
#include "stages/items.h"
#include "stages/output/training/batch_source.h"

namespace melflow {

class StageChain {
 public:
  /// What goes in: files, or samples, for which the stages up to the decoder are left out.
  enum class Input { files, samples };
  /// Takes over the stages of `plan`, which has one way from its source to one node of the stage
  /// `batches`, and is called `name` in messages. Throws RunError.
  StageChain(Plan plan, const std::string& name, Input input);
  StageChain(const StageChain&) = delete;
  StageChain& operator=(const StageChain&) = delete;

  struct Rows {
    /// ok, perhaps with a remark, or skipped or failed with the reason.
    Ledger::Entry entry;
    std::vector<std::byte> values;  ///< [count, frames, columns] of type()
    std::int64_t count = 0;
  };
  /// From any thread. `in`: a FileRef or a Waveform, by the input.
  [[nodiscard]] Rows rows(std::shared_ptr<const void> in) const;
  /// Of samples of one channel. Throws RunError where a stage refuses them.
  [[nodiscard]] Rows rows(const Samples& samples, int sample_rate) const;

  /// The source, which is no part of the chain.
  [[nodiscard]] StageRunner& source() { return *source_; }
  [[nodiscard]] const FeatureInfo& info() const { return *info_; }
  /// What a batch calls the rows.
  [[nodiscard]] const std::string& row_name() const { return row_name_; }
  [[nodiscard]] NumberType type() const { return type_; }
  /// [frames, columns], as far as a row has them.
  [[nodiscard]] std::vector<std::size_t> row_shape() const { return melflow::row_shape(*info_); }
  /// Of what is written from such rows.
  [[nodiscard]] const std::string& fingerprint() const { return fingerprint_; }

 private:
  struct Step {
    std::string name;
    std::unique_ptr<StageRunner> stage;  ///< none: it collects recordings for the next
  };
  void add(PlanNode&& node, const std::string& name);
  [[nodiscard]] std::optional<ItemError> unstorable_in(const MelPart& part) const;

  std::unique_ptr<StageRunner> source_;
  std::vector<Step> steps_;
  std::shared_ptr<const FeatureInfo> info_;
  NumberType type_ = NumberType::float32;
  std::string row_name_, fingerprint_;
};

}  // namespace melflow
