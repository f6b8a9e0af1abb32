#include "stages/features/mel/pcen_step.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "stages/features/mel/row_pass.h"

namespace melflow {
namespace {

class PcenStep final : public OrderedStep {
 public:
  explicit PcenStep(const PcenOptions& options)
      : o_(options), b_(options.b.value()), log_eps_(std::log(options.eps)) {}

  [[nodiscard]] std::unique_ptr<RowPass> start(int values_in) const override {
    return std::make_unique<Pass>(*this, values_in);
  }

 private:
  class Pass final : public RowPass {
   public:
    Pass(const PcenStep& step, int values)
        : step_(step), smooth_(static_cast<std::size_t>(values), 1.0) {}
    void take(const float* rows, std::int64_t count, const RowsOut& out) override {
      float* to = out.to;
      for (std::int64_t r = 0; r < count; ++r)
        for (double& m : smooth_) {
          const float x = *rows++;
          m = (1.0 - step_.b_) * m + step_.b_ * x;
          *to++ = static_cast<float>(step_.value(x, m));
        }
    }

   private:
    const PcenStep& step_;
    std::vector<double> smooth_;  // [values]
  };

  // By logarithms of 1 + m / eps and 1 + x s / bias, as in librosa, to keep small values accurate.
  [[nodiscard]] double value(double x, double m) const {
    const double scaled = x * std::exp(-o_.gain * (log_eps_ + std::log1p(m / o_.eps)));
    if (o_.power == 0.0) return std::log1p(scaled);
    if (o_.bias == 0.0) return std::pow(scaled, o_.power);
    return std::pow(o_.bias, o_.power) * std::expm1(o_.power * std::log1p(scaled / o_.bias));
  }

  PcenOptions o_;
  double b_;
  double log_eps_;
};

}  // namespace

double pcen_coefficient(double time_constant, double frames_per_second) {
  const double frames = time_constant * frames_per_second;
  return (std::sqrt(1.0 + 4.0 * frames * frames) - 1.0) / (2.0 * frames * frames);
}

std::shared_ptr<const FinishStep> pcen_step(const PcenOptions& options) {
  return std::make_shared<PcenStep>(options);
}

}  // namespace melflow
