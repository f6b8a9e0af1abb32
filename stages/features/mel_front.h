// mel_front.h - the parts of a mel stage that do not depend on the backend: checks the options
// against the input, makes the plan, describes the rows and bounds their memory.
//
// In:  MelStageOptions; the properties and requirements on its edges.
// Out: MelPlan, MelKernel, UtteranceSteps and FeatureInfo, all constant from plan() on.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "pipeline/stage/keeps_files.h"
#include "pipeline/stage/stage.h"
#include "stages/features/mel/mel_kernel.h"
#include "stages/features/mel/utterance_steps.h"
#include "stages/features/mel_stage_options.h"
#include "stages/items.h"

namespace melflow {

// MelKernel::instruction_set(), for those who plan a run: throws ConfigError.
std::string_view chosen_instruction_set();

class MelFront {
 public:
  explicit MelFront(MelStageOptions options);

  void keep_files(Value& settings) const { options_.keep_files(settings); }
  // Returns the requirements of the stage for those before it.
  [[nodiscard]] Requirements require(const Requirements& below) const;
  // Makes the plan and reports every problem to `check`; is_planned() if there was none. `by`: the
  // backend that the output names as the origin of its values.
  Properties plan(const Properties& given, PlanCheck& check, ComputedBy by);
  [[nodiscard]] bool is_planned() const { return info_ != nullptr; }
  // Sets the backend if it is known only after plan(); called before the first row.
  void set_computed_by(ComputedBy by) const;
  // Tells the run from which files options were read.
  void start(RunContext& run) const;
  // Returns the stage's part of the feature settings.
  [[nodiscard]] std::optional<Value> settings() const;

  [[nodiscard]] const MelOptions& options() const { return options_.mel; }
  [[nodiscard]] const std::shared_ptr<const MelPlan>& mel_plan() const { return plan_; }
  [[nodiscard]] const MelKernel& kernel() const { return *kernel_; }
  [[nodiscard]] const std::shared_ptr<const MelKernel>& shared_kernel() const { return kernel_; }
  [[nodiscard]] const std::shared_ptr<const UtteranceSteps>& finish() const { return finish_; }
  [[nodiscard]] const std::shared_ptr<const FeatureInfo>& info() const { return info_; }

  // The type of the stage's rows, after plan(): float32, or the choice of give_required_rows().
  [[nodiscard]] NumberType row_type() const { return row_type_; }
  // Chooses a 16-bit type if all readers require the same one and computed values are final.
  void give_required_rows(const Requirements& required);
  // Returns to float32, which the readers then round; called before the first row.
  void give_float32() { row_type_ = NumberType::float32; }

  // The largest size in bytes of the rows of a type for a block of `input` bytes.
  [[nodiscard]] std::size_t output_bound(std::size_t input, NumberType type) const;

  // The error of a block that cannot be computed; nullopt if it can.
  [[nodiscard]] std::optional<ItemError> refusal(const Windows& in) const;
  // The error of a recording that is too short for a frame.
  [[nodiscard]] ItemError too_short(const Windows& in) const;
  // Returns the key of a file's dither noise, from its path below the root, so that the noise does
  // not depend on other files.
  [[nodiscard]] std::uint64_t noise_key(std::size_t part, const ItemContext& context) const;
  [[nodiscard]] std::uint64_t noise_key(std::string_view name) const;

  // For recordings that are not cut: sets first_row and row_count of `out` to the frames that this
  // block completes; the last block completes all remaining ones.
  void ready_frames(const Windows& in, MelPart& out) const;
  // Applies the finishing steps that are possible after the values are computed. For windows, only
  // rows with same_as < 0 were computed; the others become copies of these. `rows` have row_type().
  void finish_windows(std::span<const std::int64_t> same_as, void* rows) const;
  void finish_whole(const Windows& in, void* rows, MelPart& out) const;
  // The error of finished rows that are not finite, as from samples far beyond full scale; nullopt
  // if all are finite.
  [[nodiscard]] std::optional<ItemError> damage(const Windows& in, const MelPart& part) const;

 private:
  void describe(ComputedBy by);
  [[nodiscard]] std::string preset_note() const;

  MelStageOptions options_;
  std::string preset_text_;  // preset_text() of the options as written
  std::shared_ptr<const MelPlan> plan_;
  std::shared_ptr<const MelKernel> kernel_;
  std::shared_ptr<const FeatureInfo> info_;
  std::shared_ptr<const UtteranceSteps> finish_;
  std::int64_t window_ = 0;  // samples of a row; 0: rows are frames
  double rows_per_sample_ = 0, rows_extra_ = 0;
  NumberType row_type_ = NumberType::float32;
  bool always_finite_ = false;  // whether samples within full scale yield finite float32 rows
};

// A stage that computes by one.
class HasMelFront : public KeepsFiles {
 public:
  [[nodiscard]] virtual const MelFront& front() const = 0;
  void keep_files(Value& settings) const final { front().keep_files(settings); }
};

}  // namespace melflow
