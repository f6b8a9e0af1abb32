// sliding_cmvn: cepstral mean and variance normalisation (CMVN) over a sliding window.
//
// In:  MelBatch.
// Out: MelBatch of the same shape.

#include "pipeline/stage/registry.h"
#include "stages/features/option_row_stage.h"
#include "stages/other_names.h"

namespace melflow {
namespace {

struct SlidingCmvnOptions {
  SlidingOptions sliding;

  void describe(Schema& s) {
    s.other_names(other_names::of_sliding_cmvn());
    add_fields(s, sliding);
  }
};

class SlidingCmvn final : public OptionRowStage<SlidingOptions> {
 public:
  explicit SlidingCmvn(const SlidingCmvnOptions& options) : OptionRowStage(options.sliding) {}
};

const RegisterStage<SlidingCmvn, SlidingCmvnOptions> register_sliding_cmvn{
    "sliding_cmvn", "Subtracts from each frame the mean of the frames around it (sliding CMVN).",
    true};

}  // namespace
}  // namespace melflow
