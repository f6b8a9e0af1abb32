// fit_rows: gives recordings or windows a certain number of rows.
//
// In:  MelBatch.
// Out: MelBatch with rows of one value added at the end, or rows left out there.

#include "pipeline/stage/registry.h"
#include "stages/features/option_row_stage.h"
#include "stages/other_names.h"

namespace melflow {
namespace {

struct FitRowsOptions {
  FitOptions fit;

  void describe(Schema& s) {
    s.other_names(other_names::of_fit_rows());
    add_fields(s, fit);
  }
};

class FitRows final : public OptionRowStage<FitOptions> {
 public:
  explicit FitRows(const FitRowsOptions& options) : OptionRowStage(options.fit) {}

 protected:
  [[nodiscard]] std::string resized_by() const override { return "fit_rows"; }
  [[nodiscard]] std::string instead_of_samples() const override {
    return "; for a length of the samples put a node fit_samples before";
  }
};

const RegisterStage<FitRows, FitRowsOptions> register_fit_rows{
    "fit_rows", "Fills up or cuts recordings and windows to a number of rows.", true};

}  // namespace
}  // namespace melflow
