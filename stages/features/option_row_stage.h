// A stage of rows whose options and step are those of the front end's core (mel/row_steps.h).
#pragma once

#include <memory>
#include <optional>

#include "stages/features/mel/row_steps.h"
#include "stages/features/option_fields.h"
#include "stages/features/row_stage.h"

namespace melflow {

template <class Options>
class OptionRowStage : public RowStage {
 public:
  explicit OptionRowStage(const Options& options) : options_(options) {}

  [[nodiscard]] std::optional<Value> settings() const override { return recorded(options_); }

 protected:
  std::shared_ptr<const FinishStep> make_step(const FeatureInfo& in, FeatureInfo& out,
                                              PlanCheck& check) final {
    if (in.is_samples()) {
      check.error("", "needs rows of features, what arrives are samples" + instead_of_samples());
      return nullptr;
    }
    RowShape rows{in.columns, in.energy_column, in.axis, in.unit,
                  static_cast<double>(in.sample_rate) / in.hop};
    const auto problems = melflow::check(options_, rows);
    for (const OptionProblem& p : problems) check.error(p.option, p.without_name());
    if (!problems.empty()) return nullptr;
    options_ = canonical(options_, rows);
    auto step = melflow::make_step(options_, rows);
    out.energy_column = rows.energy_column;
    if (rows.axis != in.axis) {
      out.axis = rows.axis;
      out.column_hz.clear();
    }
    out.unit = rows.unit;
    describe_rows(in, out, check);
    return step;
  }
  [[nodiscard]] std::int64_t least_frames() const final { return least_rows(options_); }
  /// Changes what `out`, a copy of `in`, says beside columns, unit and energy.
  virtual void describe_rows(const FeatureInfo& /*in*/, FeatureInfo& /*out*/, PlanCheck&) {}
  /// The end of the message about samples: what to do with them.
  [[nodiscard]] virtual std::string instead_of_samples() const { return {}; }

  [[nodiscard]] const Options& options() const { return options_; }

 private:
  Options options_;
};

}  // namespace melflow
