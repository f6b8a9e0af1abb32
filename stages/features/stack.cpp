// stack: joins neighbouring frames to one row, and skips frames between rows.
//
// In:  MelBatch.
// Out: MelBatch with `frames` times as many values a row and, with a hop, fewer rows.

#include <algorithm>
#include <limits>

#include "pipeline/stage/registry.h"
#include "stages/features/option_row_stage.h"
#include "stages/other_names.h"

namespace melflow {
namespace {

struct StackStageOptions {
  StackOptions stack;

  void describe(Schema& s) {
    s.other_names(other_names::of_stack());
    s.other_values(other_names::values_of_stack());
    add_fields(s, stack);
  }
};

class Stack final : public OptionRowStage<StackOptions> {
 public:
  explicit Stack(const StackStageOptions& options)
      : OptionRowStage(canonical(options.stack, RowShape{})) {}

 protected:
  void describe_rows(const FeatureInfo& in, FeatureInfo& out, PlanCheck&) override {
    constexpr std::int64_t kLongestHop = std::numeric_limits<int>::max();
    out.hop = static_cast<int>(std::min(std::int64_t{in.hop} * *options().hop, kLongestHop));
  }
  [[nodiscard]] std::string resized_by() const override { return "stack"; }
};

const RegisterStage<Stack, StackStageOptions> register_stack{
    "stack", "Joins neighbouring frames to one row, and skips frames between rows.", true};

}  // namespace
}  // namespace melflow
