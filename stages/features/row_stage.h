// A stage that changes finished rows, frame by frame or utterance by utterance.
//
// In:  MelBatch.
// Out: MelBatch with rows of other values, perhaps of another width and of another number.
//
// If the rows of a file are not finished, or the step needs the whole file and this is a block of
// it, the step is added to those that the sink will apply (MelPart::pending).
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "pipeline/stage/stage_kinds.h"
#include "stages/features/mel/utterance_steps.h"
#include "stages/items.h"
#include "stages/length.h"
#include "stages/passes_streams.h"

namespace melflow {

class RowStage : public Transform<MelBatch, MelBatch>, public TellsLength, public PassesStreams {
 public:
  // Every part has its row numbers, so blocks may come in any order.
  RowStage() { traits_.order = BlockOrder::any; }
  [[nodiscard]] Requirements require(const Requirements& below) const final;
  Properties plan(const Properties& given, const Requirements&, PlanCheck& check) final;
  [[nodiscard]] std::size_t output_bound(const SourceInfo&, std::size_t input) const final;
  Result<std::shared_ptr<const MelBatch>> process(std::shared_ptr<const MelBatch> in,
                                                  ItemContext& context) const final;

  [[nodiscard]] std::optional<RecordingLength> length_of(RecordingLength in) const final;
  [[nodiscard]] std::string why_no_stream() const override { return {}; }
  /// The step for recordings of which nothing is known but their samples; after plan().
  [[nodiscard]] const std::shared_ptr<const FinishStep>& step() const { return step_; }
  /// The rows that it gives; after plan().
  [[nodiscard]] const std::shared_ptr<const FeatureInfo>& info() const { return out_; }

 protected:
  /// Makes the step for rows like these and changes `out`, a copy of `in`, to describe its result.
  /// Returns null after an error in `check`.
  virtual std::shared_ptr<const FinishStep> make_step(const FeatureInfo& in, FeatureInfo& out,
                                                      PlanCheck& check) = 0;
  /// The step for the rows of a recording of the run; an error fails it. Not given: that of
  /// make_step().
  [[nodiscard]] virtual Result<std::shared_ptr<const FinishStep>> step_for(
      std::size_t /*recording*/) const {
    return step_;
  }
  /// The stage's name if it changes the number of rows, else "".
  [[nodiscard]] virtual std::string resized_by() const { return {}; }
  /// Recordings with fewer frames are skipped.
  [[nodiscard]] virtual std::int64_t least_frames() const { return 0; }

 private:
  Result<std::shared_ptr<const MelPart>> changed(const MelPart& in, std::size_t recording,
                                                 ItemContext& context) const;

  std::shared_ptr<const FinishStep> step_;
  std::shared_ptr<const FeatureInfo> in_, out_;
  int recordings_ = 1;  // in a batch, at most
};

}  // namespace melflow
