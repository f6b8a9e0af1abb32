#include "stages/features/mel/delta_step.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "stages/features/mel/row_pass.h"

namespace melflow {
namespace {

class DeltaStep final : public OrderedStep {
 public:
  explicit DeltaStep(const DeltaOptions& options) : o_(options), half_(options.width / 2) {
    const std::vector<double> slope = savitzky_golay(o_.width, 1, 1, 0.0);
    std::vector<double> filter{1.0};
    for (int order = 1; order <= o_.order; ++order) {
      if (o_.method == DeltaOptions::Method::librosa) {
        filters_.push_back(savitzky_golay(o_.width, order, order, 0.0));
        edges_.emplace_back();
        for (int at = -half_; at <= half_; ++at)
          edges_.back().push_back(savitzky_golay(o_.width, order, order, at));
        continue;
      }
      std::vector<double> longer(filter.size() + slope.size() - 1, 0.0);
      for (std::size_t i = 0; i < filter.size(); ++i)
        for (std::size_t j = 0; j < slope.size(); ++j) longer[i + j] += filter[i] * slope[j];
      filter = std::move(longer);
      filters_.push_back(o_.method == DeltaOptions::Method::kaldi ? filter : slope);
    }
  }

  [[nodiscard]] int values_out(int values_in) const override { return values_in * (o_.order + 1); }
  [[nodiscard]] std::int64_t rows_out(std::int64_t rows_in) const override {
    return rows_in < least_rows() ? 0 : rows_in;
  }
  [[nodiscard]] std::int64_t rows_ready(std::int64_t seen) const override {
    return seen < least_rows() ? 0 : std::max<std::int64_t>(0, seen - reach());
  }
  [[nodiscard]] std::int64_t most_held() const override { return reach() + least_rows(); }
  [[nodiscard]] std::unique_ptr<RowPass> start(int values_in) const override {
    return std::make_unique<Pass>(*this, values_in);
  }

 private:
  [[nodiscard]] bool is_by_slopes() const { return o_.method == DeltaOptions::Method::regression; }
  [[nodiscard]] bool is_librosa() const { return o_.method == DeltaOptions::Method::librosa; }
  // Rows that the fit to the outermost rows takes.
  [[nodiscard]] std::int64_t least_rows() const { return is_librosa() ? o_.width : 1; }
  // Rows after a row that its derivatives take.
  [[nodiscard]] std::int64_t reach() const {
    return is_librosa() ? half_ : std::int64_t{o_.order} * half_;
  }

  // The derivatives of which those of an order are taken; 0: the features.
  [[nodiscard]] int below(int order) const { return is_by_slopes() ? order - 1 : 0; }
  [[nodiscard]] const std::vector<double>& filter(int order) const {
    return filters_[static_cast<std::size_t>(order - 1)];
  }
  [[nodiscard]] std::int64_t reach_of(int order) const {
    return static_cast<std::int64_t>(filter(order).size() / 2);
  }

  class Pass final : public RowPass {
   public:
    Pass(const DeltaStep& step, int values)
        : step_(step),
          values_(values),
          levels_(static_cast<std::size_t>(step.o_.order + 1), HeldRows(values)),
          fresh_(levels_.size()) {}

    void reserve(std::int64_t piece) override {
      const std::int64_t held = 2 * step_.most_held();
      for (HeldRows& level : levels_) level.reserve(held, piece + held);
      for (std::vector<float>& fresh : fresh_)
        fresh.reserve(static_cast<std::size_t>((piece + held) * values_));
      sums_.reserve(static_cast<std::size_t>(values_));
    }

    void take(const float* rows, std::int64_t count, const RowsOut& out) override {
      levels_.front().take(rows, count);
      const std::int64_t end = out.first + out.count;
      for (int order = 1; order <= step_.o_.order; ++order) derive(order, end, out.total);
      for (std::int64_t t = out.first; t < end; ++t)
        for (std::size_t k = 0; k < levels_.size(); ++k)
          std::copy_n(
              levels_[k].row(t), values_,
              out.to +
                  ((t - out.first) * std::ssize(levels_) + static_cast<std::int64_t>(k)) * values_);
      for (int level = 0; level <= step_.o_.order; ++level) keep(level, end);
    }

   private:
    HeldRows& level(int order) { return levels_[static_cast<std::size_t>(order)]; }

    // Computes derivative `order` of all rows before `end` or, where further ones are taken of it,
    // of all that can be.
    void derive(int order, std::int64_t end, std::int64_t total) {
      HeldRows& from = level(step_.below(order));
      HeldRows& to = level(order);
      const std::int64_t reach = step_.reach_of(order);
      if (step_.is_by_slopes())
        end = total >= 0 ? total : std::max<std::int64_t>(0, from.end() - reach);
      std::vector<float>& fresh = fresh_[static_cast<std::size_t>(order)];
      const std::int64_t first = to.end();
      fresh.resize(static_cast<std::size_t>((end - first) * values_));
      for (std::int64_t t = first; t < end; ++t) {
        float* row = fresh.data() + (t - first) * values_;
        const bool is_last = total >= 0 && t >= total - reach;
        if (step_.is_librosa() && (t < reach || is_last)) {
          const std::int64_t begin = t < reach ? 0 : total - step_.o_.width;
          apply(step_.edges_[static_cast<std::size_t>(order - 1)]
                            [static_cast<std::size_t>(t - begin)],
                from, begin, row);
        } else {
          apply(step_.filter(order), from, t - reach, row);
        }
      }
      to.take(fresh.data(), end - first);
    }

    // Sums rows from `first` on times the filter's values; outside the utterance its end rows are
    // repeated.
    void apply(const std::vector<double>& filter, const HeldRows& from, std::int64_t first,
               float* to) {
      sums_.assign(static_cast<std::size_t>(values_), 0.0);
      for (const double factor : filter) {
        const float* row = from.row(std::clamp<std::int64_t>(first++, 0, from.end() - 1));
        for (std::size_t c = 0; c < sums_.size(); ++c) sums_[c] += factor * row[c];
      }
      std::copy(sums_.begin(), sums_.end(), to);
    }

    // Keeps what derivatives of later rows are taken of, and what is not written yet.
    void keep(int of, std::int64_t end) {
      for (int order = 1; order <= step_.o_.order; ++order)
        if (step_.below(order) == of)
          end = std::min(end, level(order).end() - step_.reach_of(order));
      if (of == 0 && step_.is_librosa()) end = std::min(end, level(0).end() - step_.o_.width);
      level(of).keep(end);
    }

    const DeltaStep& step_;
    const int values_;
    std::vector<HeldRows> levels_;           // the features, and each of their derivatives
    std::vector<std::vector<float>> fresh_;  // the piece of each
    std::vector<double> sums_;               // work space
  };

  DeltaOptions o_;
  int half_;
  std::vector<std::vector<double>> filters_;  // [order - 1]
  // [order - 1][position in the outermost `width` rows], for Method::librosa.
  std::vector<std::vector<std::vector<double>>> edges_;
};

}  // namespace

// Solves the normal equations of the fit for the vector that yields the derivative.
std::vector<double> savitzky_golay(int width, int degree, int order, double at) {
  const int n = degree + 1, half = width / 2;
  std::vector<std::vector<long double>> a(
      static_cast<std::size_t>(n), std::vector<long double>(static_cast<std::size_t>(n + 1)));
  for (int r = 0; r < n; ++r) {
    for (int c = 0; c < n; ++c)
      for (int x = -half; x <= half; ++x)
        a[static_cast<std::size_t>(r)][static_cast<std::size_t>(c)] +=
            std::pow(static_cast<long double>(x), r + c);
    // Derivative of x^r at `at`.
    long double derivative = r >= order ? 1.0L : 0.0L;
    for (int i = 0; i < order; ++i) derivative *= r - i;
    if (r >= order) derivative *= std::pow(static_cast<long double>(at), r - order);
    a[static_cast<std::size_t>(r)][static_cast<std::size_t>(n)] = derivative;
  }
  for (std::size_t c = 0; c < static_cast<std::size_t>(n); ++c) {  // Gauss and Jordan, with pivots
    std::size_t pivot = c;
    for (std::size_t r = c; r < static_cast<std::size_t>(n); ++r)
      if (std::abs(a[r][c]) > std::abs(a[pivot][c])) pivot = r;
    std::swap(a[c], a[pivot]);
    for (std::size_t r = 0; r < static_cast<std::size_t>(n); ++r) {
      if (r == c) continue;
      const long double factor = a[r][c] / a[c][c];
      for (std::size_t k = c; k <= static_cast<std::size_t>(n); ++k) a[r][k] -= factor * a[c][k];
    }
  }
  std::vector<double> filter;
  for (int x = -half; x <= half; ++x) {
    long double sum = 0;
    for (int r = 0; r < n; ++r)
      sum += a[static_cast<std::size_t>(r)][static_cast<std::size_t>(n)] /
             a[static_cast<std::size_t>(r)][static_cast<std::size_t>(r)] *
             std::pow(static_cast<long double>(x), r);
    filter.push_back(static_cast<double>(sum));
  }
  return filter;
}

std::shared_ptr<const FinishStep> delta_step(const DeltaOptions& options) {
  return std::make_shared<DeltaStep>(options);
}

}  // namespace melflow
