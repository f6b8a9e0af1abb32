// fit_rows: gives recordings or windows a certain number of rows.
//
// In:  MelBatch.
// Out: MelBatch with rows of one value added at the end, or rows left out there.

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "pipeline/stage/registry.h"
#include "stages/features/mel/fit_step.h"
#include "stages/features/row_stage.h"
#include "stages/other_names.h"
#include "stages/settings_in_use.h"

namespace melflow {

template <>
struct EnumNames<FitOptions::Rest> {
  static constexpr std::pair<const char*, FitOptions::Rest> values[] = {
      {"fill", FitOptions::Rest::fill}, {"drop", FitOptions::Rest::drop}};
};

namespace {

constexpr int kMostRows = 1 << 20;

struct FitRowsOptions {
  std::optional<int> rows, multiple;
  int extra = 0;
  FitOptions::Rest rest = FitOptions::Rest::fill;
  double value = 0.0;

  void describe(Schema& s) {
    s.other_names(other_names::of_fit_rows());
    s.field("rows", rows,
            "number of rows of every recording or window [rows]: shorter ones are filled up with "
            "value, longer ones lose their last rows; not set: as multiple and extra say")
        .range(1, kMostRows);
    s.field("multiple", multiple,
            "number of which the number of rows becomes a multiple [rows]; see rest")
        .range(1, kMostRows)
        .used_with("no rows", [this] { return !rows; });
    s.field("extra", extra,
            "rows of value that are added before multiple is applied [rows]; 1: the masked last "
            "frame of NeMo")
        .range(0, kMostRows)
        .used_with("no rows", [this] { return !rows; });
    s.field("rest", rest,
            "what becomes of rows beyond the last whole multiple; fill: they are filled up with "
            "value to the next one; drop: they are left out")
        .used_with("multiple", [this] { return multiple.has_value() && !rows; });
    s.field("value", value,
            "value of the rows that are added, in the unit of the rows that arrive; 0: what "
            "normalize of mel gives for the mean")
        .range(-1e30, 1e30);
  }
};

class FitRows final : public RowStage {
 public:
  explicit FitRows(FitRowsOptions options) : options_(options) {}

  [[nodiscard]] std::optional<Value> settings() const override { return settings_in_use(options_); }

 protected:
  std::shared_ptr<const FinishStep> make_step(const FeatureInfo& in, FeatureInfo&,
                                              PlanCheck& check) override {
    if (in.is_samples()) {
      check.error(
          "",
          "needs rows of features, what arrives are samples; for a length of the samples put "
          "a node fit_samples before");
      return nullptr;
    }
    const auto& [rows, multiple, extra, rest, value] = options_;
    if (!rows && multiple.value_or(1) == 1 && extra == 0) {
      check.error("", "needs rows, multiple above 1 or extra: how many rows there are to be");
      return nullptr;
    }
    fit_ = {rows.value_or(0), extra, multiple.value_or(1), rest, value};
    return fit_step(fit_);
  }
  [[nodiscard]] std::string resized_by() const override { return "fit_rows"; }
  [[nodiscard]] std::int64_t least_frames() const override {
    const bool drops = fit_.rows == 0 && fit_.rest == FitOptions::Rest::drop;
    return drops ? std::max<std::int64_t>(1, fit_.multiple - fit_.extra) : 1;
  }

 private:
  FitRowsOptions options_;
  FitOptions fit_;
};

const RegisterStage<FitRows, FitRowsOptions> register_fit_rows{
    "fit_rows", "Fills up or cuts recordings and windows to a number of rows.", true};

}  // namespace
}  // namespace melflow
