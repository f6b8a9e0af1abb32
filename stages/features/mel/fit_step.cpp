#include "stages/features/mel/fit_step.h"

#include <algorithm>

#include "stages/features/mel/row_pass.h"

namespace melflow {
namespace {

class FitPass final : public RowPass {
 public:
  FitPass(const FitOptions& options, std::int64_t most_held, int values)
      : value_(static_cast<float>(options.value)),
        most_held_(most_held),
        most_(options.rows.value_or(0)),
        values_(values),
        held_(values) {}

  void reserve(std::int64_t piece) override { held_.reserve(most_held_, piece); }
  void take(const float* rows, std::int64_t count, const RowsOut& out) override {
    held_.take(rows, count);
    float* to = out.to;
    for (std::int64_t r = out.first; r < out.first + out.count; ++r, to += values_) {
      if (r < held_.end())
        std::copy_n(held_.row(r), values_, to);
      else
        std::fill_n(to, values_, value_);
    }
    const std::int64_t next = out.first + out.count;
    held_.keep(most_ > 0 && next == most_ ? held_.end() : next);
  }

 private:
  const float value_;
  const std::int64_t most_held_;
  const std::int64_t most_;  // rows that are written; 0: any number
  const int values_;
  HeldRows held_;
};

class FitStep final : public OrderedStep {
 public:
  explicit FitStep(const FitOptions& options) : o_(options) {}

  [[nodiscard]] std::int64_t rows_out(std::int64_t rows_in) const override {
    return fitted_rows(o_, rows_in);
  }
  [[nodiscard]] std::int64_t rows_ready(std::int64_t seen) const override {
    return std::min(seen, fitted_rows(o_, seen));
  }
  [[nodiscard]] std::int64_t most_held() const override {
    return o_.rest == FitOptions::Rest::drop ? o_.multiple.value_or(1) : 0;
  }
  [[nodiscard]] std::unique_ptr<RowPass> start(int values_in) const override {
    return std::make_unique<FitPass>(o_, most_held(), values_in);
  }

 private:
  FitOptions o_;
};

}  // namespace

std::int64_t fitted_rows(const FitOptions& o, std::int64_t rows) {
  if (o.rows) return *o.rows;
  const std::int64_t multiple = o.multiple.value_or(1);
  const std::int64_t up = o.rest == FitOptions::Rest::fill ? multiple - 1 : 0;
  return (rows + o.extra + up) / multiple * multiple;
}

std::shared_ptr<const FinishStep> fit_step(const FitOptions& options) {
  return std::make_shared<FitStep>(options);
}

}  // namespace melflow
