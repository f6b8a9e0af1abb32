#include "stages/features/mel/cepstrum.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include "stages/features/mel/row_pass.h"

namespace melflow {
namespace {

// Value n of coefficient k: Ahmed, Natarajan and Rao (1974), with scipy's factors.
double dct_value(const CepstrumOptions& o, int k, int n, int size) {
  const bool ortho = o.norm == CepstrumOptions::Norm::ortho;
  const int varied = o.dct_type == 2 ? k : n;  // the index that is 0 in the constant basis function
  const int other = o.dct_type == 2 ? n : k;
  const double wave = std::cos(std::numbers::pi * varied * (2 * other + 1) / (2.0 * size));
  if (ortho) return wave * std::sqrt((varied == 0 ? 1.0 : 2.0) / size);
  return o.dct_type == 3 && varied == 0 ? 1.0 : 2.0 * wave;
}

double lifter_value(const CepstrumOptions& o, int i) {
  if (o.lifter == 0) return 1.0;
  const int at = o.lifter_style == CepstrumOptions::LifterStyle::librosa ? i + 1 : i;
  return 1.0 + o.lifter / 2.0 * std::sin(std::numbers::pi * at / o.lifter);
}

class CepstrumStep final : public OrderedStep {
 public:
  CepstrumStep(const CepstrumOptions& o, int columns, int energy_column)
      : count_(o.n_mfcc), columns_(columns), energy_column_(energy_column), last_(o.htk_compat) {
    const int bands = columns - (energy_column >= 0 ? 1 : 0);
    for (int n = 0; n < bands; ++n) {
      for (int k = 0; k < count_; ++k) {
        double factor = dct_value(o, k, n, bands) * lifter_value(o, k);
        if (k == 0 && last_ && energy_column < 0) factor *= std::numbers::sqrt2;
        matrix_.push_back(factor);
      }
    }
  }

  [[nodiscard]] bool needs_utterance() const override { return false; }
  [[nodiscard]] int values_out(int) const override { return count_; }

  [[nodiscard]] std::unique_ptr<RowPass> start(int) const override {
    return std::make_unique<Pass>(*this);
  }

 private:
  class Pass final : public RowPass {
   public:
    explicit Pass(const CepstrumStep& step)
        : step_(step), sums_(static_cast<std::size_t>(step.count_)) {}
    void take(const float* rows, std::int64_t count, const RowsOut& out) override {
      for (std::int64_t r = 0; r < count; ++r)
        step_.row(rows + r * step_.columns_, sums_, out.to + r * step_.count_);
    }

   private:
    const CepstrumStep& step_;
    std::vector<double> sums_;  // work space
  };

  void row(const float* levels, std::vector<double>& sums, float* out) const {
    std::fill(sums.begin(), sums.end(), 0.0);
    const double* factors = matrix_.data();
    for (int c = 0; c < columns_; ++c) {
      if (c == energy_column_) continue;
      const double level = levels[c];
      for (int k = 0; k < count_; ++k) sums[static_cast<std::size_t>(k)] += level * factors[k];
      factors += count_;
    }
    if (energy_column_ >= 0) sums[0] = levels[energy_column_];
    if (last_) std::rotate(sums.begin(), sums.begin() + 1, sums.end());
    std::copy(sums.begin(), sums.end(), out);
  }

  int count_, columns_, energy_column_;
  bool last_;
  std::vector<double> matrix_;  // [bands, n_mfcc]
};

}  // namespace

std::shared_ptr<const FinishStep> cepstrum_step(const CepstrumOptions& options, int columns,
                                                int energy_column) {
  return std::make_shared<CepstrumStep>(options, columns, energy_column);
}

}  // namespace melflow
