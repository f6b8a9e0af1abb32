// deltas: appends time derivatives to features.
//
// In:  MelBatch.
// Out: MelBatch with order + 1 times as many values a frame.

#include "pipeline/stage/registry.h"
#include "stages/features/option_row_stage.h"
#include "stages/other_names.h"

namespace melflow {
namespace {

struct DeltaStageOptions {
  DeltaOptions delta;

  void describe(Schema& s) {
    s.other_names(other_names::of_deltas());
    add_fields(s, delta);
  }
};

class Deltas final : public OptionRowStage<DeltaOptions> {
 public:
  explicit Deltas(const DeltaStageOptions& options) : OptionRowStage(options.delta) {}
};

const RegisterStage<Deltas, DeltaStageOptions> register_deltas{
    "deltas", "Appends the time derivatives of features to them.", true};

}  // namespace
}  // namespace melflow
