// mel_front.h - a mel stage before it computes anything, whatever computes it: its options checked
// against what arrives, the plan, the description of its rows and the memory they take.
//
// In:  MelStageOptions; the properties and requirements on its edges.
// Out: MelPlan, MelKernel, UtteranceSteps and FeatureInfo, all constant from plan() on.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "pipeline/stage.h"
#include "stages/features/mel/mel_kernel.h"
#include "stages/features/mel/utterance_steps.h"
#include "stages/features/mel_stage_options.h"
#include "stages/items.h"

namespace melflow {

class MelFront {
 public:
  explicit MelFront(MelStageOptions options);

  // What is needed from upstream.
  [[nodiscard]] Requirements require(const Requirements& below) const;
  // Reports every problem to `check`; is_planned() when there was none. `by` is what the output says
  // of its values.
  Properties plan(const Properties& given, PlanCheck& check, ComputedBy by);
  [[nodiscard]] bool is_planned() const { return info_ != nullptr; }
  // Where it is known only later; before the first row.
  void set_computed_by(ComputedBy by) const { *info_->computed_by = std::move(by); }
  // The stage's part of the feature settings.
  [[nodiscard]] std::optional<Value> settings() const;

  [[nodiscard]] const MelOptions& options() const { return options_.mel; }
  [[nodiscard]] const std::shared_ptr<const MelPlan>& mel_plan() const { return plan_; }
  [[nodiscard]] const MelKernel& kernel() const { return *kernel_; }
  [[nodiscard]] const std::shared_ptr<const UtteranceSteps>& finish() const { return finish_; }
  [[nodiscard]] const std::shared_ptr<const FeatureInfo>& info() const { return info_; }

  // In which type rows are given, from plan() on: float32, or what give_required_rows() found.
  [[nodiscard]] NumberType row_type() const { return row_type_; }
  // Takes 16 bits where all that is `required` is that and values are final as they are computed.
  void give_required_rows(const Requirements& required);
  // Before the first row: whoever asked for 16 bits rounds them.
  void give_float32() { row_type_ = NumberType::float32; }

  // Most bytes of rows of a type that a block of `input` bytes gives.
  [[nodiscard]] std::size_t output_bound(std::size_t input, NumberType type) const;

  // Why a block cannot be computed, nothing when it can.
  [[nodiscard]] std::optional<ItemError> refusal(const Windows& in) const;
  // Of a recording that gives no frame.
  [[nodiscard]] ItemError too_short(const Windows& in) const;
  // Of the file's name below the root, so that its noise does not depend on what else is there.
  [[nodiscard]] std::uint64_t noise_key(std::size_t part, const ItemContext& context) const;

  // Of a whole recording: the frames that this block makes possible, or at the end all that are
  // left. Into `out`: first_row and row_count.
  void ready_frames(const Windows& in, MelPart& out) const;
  // Once the values are there: whatever of the finishing steps can be done now. Of windows only
  // rows with same_as < 0 are there; the others become copies of those.
  // `rows` have row_type().
  void finish_windows(std::span<const std::int64_t> same_as, void* rows) const;
  void finish_whole(const Windows& in, void* rows, MelPart& out) const;
  // After that: why they cannot be kept, nothing when they can. Samples far beyond full scale give
  // values that are not finite.
  [[nodiscard]] std::optional<ItemError> damage(const Windows& in, const MelPart& part) const;

 private:
  void describe(ComputedBy by);
  [[nodiscard]] std::string by_preset() const;

  MelStageOptions options_;
  std::string preset_text_;  // of the options as they were written
  std::shared_ptr<const MelPlan> plan_;
  std::unique_ptr<MelKernel> kernel_;
  std::shared_ptr<const FeatureInfo> info_;
  std::shared_ptr<const UtteranceSteps> finish_;
  std::int64_t window_ = 0;  // samples of a row; 0: rows are frames
  double rows_per_sample_ = 0, rows_extra_ = 0;
  NumberType row_type_ = NumberType::float32;
  bool always_finite_ = false;  // are float32 rows of samples up to full scale
};

}  // namespace melflow
