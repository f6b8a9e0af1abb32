// mfcc: computes cepstral coefficients of log-mel rows.
//
// In:  MelBatch of levels.
// Out: MelBatch with n_mfcc values a frame.

#include "pipeline/stage/registry.h"
#include "stages/features/option_row_stage.h"
#include "stages/other_names.h"

namespace melflow {
namespace {

struct MfccOptions {
  CepstrumOptions cepstrum;

  void describe(Schema& s) {
    s.other_names(other_names::of_mfcc());
    add_fields(s, cepstrum);
  }
};

class Mfcc final : public OptionRowStage<CepstrumOptions> {
 public:
  explicit Mfcc(const MfccOptions& options) : OptionRowStage(options.cepstrum) {}

 protected:
  void describe_rows(const FeatureInfo& in, FeatureInfo& out, PlanCheck& check) override {
    if (!in.is_log)
      check.warning("",
                    "takes the logarithm of mel bands, but these are linear; set log: db in mel");
    out.name = "mfcc";
  }
};

const RegisterStage<Mfcc, MfccOptions> register_mfcc{
    "mfcc", "Cepstral coefficients (MFCC) of log mel bands.", true};

}  // namespace
}  // namespace melflow
