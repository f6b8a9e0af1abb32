// pcen: per-channel energy normalisation instead of a logarithm.
//
// In:  MelBatch of linear bands or bins.
// Out: MelBatch of the same shape.

#include "pipeline/stage/registry.h"
#include "stages/features/option_row_stage.h"

namespace melflow {
namespace {

struct PcenStageOptions {
  PcenOptions pcen;

  void describe(Schema& s) { add_fields(s, pcen); }
};

class Pcen final : public OptionRowStage<PcenOptions> {
 public:
  explicit Pcen(const PcenStageOptions& options) : OptionRowStage(options.pcen) {}
};

const RegisterStage<Pcen, PcenStageOptions> register_pcen{
    "pcen", "Per-channel energy normalisation (PCEN) of linear mel bands.", true};

}  // namespace
}  // namespace melflow
