// mel_front.h - everything of a mel stage that does not depend on the backend: checks the options
// against what arrives, makes the plan, describes the rows and bounds the memory that they take.
//
// In:  MelStageOptions; the properties and requirements on its edges.
// Out: MelPlan, MelKernel, UtteranceSteps and FeatureInfo, all constant from plan() on.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "pipeline/stage/stage.h"
#include "stages/features/mel/mel_kernel.h"
#include "stages/features/mel/utterance_steps.h"
#include "stages/features/mel_stage_options.h"
#include "stages/items.h"

namespace melflow {

class MelFront {
 public:
  explicit MelFront(MelStageOptions options);

  // What the stage requires from upstream.
  [[nodiscard]] Requirements require(const Requirements& below) const;
  // Makes the plan and reports every problem to `check`; is_planned() when there was none. `by`:
  // the backend that the output names as the origin of its values.
  Properties plan(const Properties& given, PlanCheck& check, ComputedBy by);
  [[nodiscard]] bool is_planned() const { return info_ != nullptr; }
  // Sets the backend where it is known only after plan(); to be called before the first row.
  void set_computed_by(ComputedBy by) const;
  // Tells the run of the files that options are from.
  void start(RunContext& run) const;
  // The stage's part of the feature settings.
  [[nodiscard]] std::optional<Value> settings() const;

  [[nodiscard]] const MelOptions& options() const { return options_.mel; }
  [[nodiscard]] const std::shared_ptr<const MelPlan>& mel_plan() const { return plan_; }
  [[nodiscard]] const MelKernel& kernel() const { return *kernel_; }
  [[nodiscard]] const std::shared_ptr<const UtteranceSteps>& finish() const { return finish_; }
  [[nodiscard]] const std::shared_ptr<const FeatureInfo>& info() const { return info_; }

  // The type of the rows that the stage gives, after plan(): float32, or what give_required_rows()
  // chose.
  [[nodiscard]] NumberType row_type() const { return row_type_; }
  // Chooses a 16-bit type where all readers require the same one and computed values are final.
  void give_required_rows(const Requirements& required);
  // Goes back to float32, which the readers then round; to be called before the first row.
  void give_float32() { row_type_ = NumberType::float32; }

  // The most bytes of rows of a type that a block of `input` bytes gives.
  [[nodiscard]] std::size_t output_bound(std::size_t input, NumberType type) const;

  // The error of a block that cannot be computed; nothing when it can.
  [[nodiscard]] std::optional<ItemError> refusal(const Windows& in) const;
  // The error of a recording that is too short for a frame.
  [[nodiscard]] ItemError too_short(const Windows& in) const;
  // The key of a file's dither noise, from its path below the root, so that the noise does not
  // depend on other files.
  [[nodiscard]] std::uint64_t noise_key(std::size_t part, const ItemContext& context) const;

  // For recordings that are not cut: sets first_row and row_count of `out` to the frames that this
  // block completes, or to all remaining ones with the last block.
  void ready_frames(const Windows& in, MelPart& out) const;
  // Does those finishing steps that are possible now that the values are computed. Of windows only
  // rows with same_as < 0 have been computed; the others become copies of these. `rows` have
  // row_type().
  void finish_windows(std::span<const std::int64_t> same_as, void* rows) const;
  void finish_whole(const Windows& in, void* rows, MelPart& out) const;
  // The error of finished rows that are not finite, as samples far beyond full scale give them;
  // nothing when all are.
  [[nodiscard]] std::optional<ItemError> damage(const Windows& in, const MelPart& part) const;

 private:
  void describe(ComputedBy by);
  [[nodiscard]] std::string by_preset() const;

  MelStageOptions options_;
  std::string preset_text_;  // preset_text() of the options as written
  std::shared_ptr<const MelPlan> plan_;
  std::unique_ptr<MelKernel> kernel_;
  std::shared_ptr<const FeatureInfo> info_;
  std::shared_ptr<const UtteranceSteps> finish_;
  std::int64_t window_ = 0;  // samples of a row; 0: rows are frames
  double rows_per_sample_ = 0, rows_extra_ = 0;
  NumberType row_type_ = NumberType::float32;
  bool always_finite_ = false;  // whether samples up to full scale give finite float32 rows
};

}  // namespace melflow
