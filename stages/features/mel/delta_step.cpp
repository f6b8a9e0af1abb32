#include "stages/features/mel/delta_step.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace melflow {
namespace {

// Neighbouring rows of one utterance, from row `first` on.
struct Run {
  std::int64_t first = 0;
  std::vector<float> values;
};

class DeltaStep final : public FinishStep {
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

  [[nodiscard]] bool needs_utterance() const override { return true; }
  [[nodiscard]] int values_out(int values_in) const override { return values_in * (o_.order + 1); }

  void run(const UtteranceRows& in, UtteranceRows& out) const override {
    // A piece needs rows on both sides again; in a long piece these are a small share.
    const std::int64_t piece = std::max<std::int64_t>(std::min(in.piece(), out.piece()),
                                                      std::int64_t{4} * o_.order * half_);
    std::vector<float> room;
    for (std::int64_t first = 0; first < in.rows(); first += piece) {
      const std::int64_t n = std::min(piece, in.rows() - first);
      float* to = out.place(first, n, room);
      for (int order = 0; order <= o_.order; ++order) {
        const Run run = rows_of(in, order, first, first + n);
        for (std::int64_t r = 0; r < n; ++r)
          std::copy_n(run.values.data() + (first + r - run.first) * in.values(), in.values(),
                      to + r * out.values() + order * in.values());
      }
      out.put(first, n, to);
    }
  }

 private:
  // Returns derivative `order` of rows [begin, end), which lie within the utterance.
  [[nodiscard]] Run rows_of(const UtteranceRows& in, int order, std::int64_t begin,
                            std::int64_t end) const {
    Run out{begin, std::vector<float>(static_cast<std::size_t>((end - begin) * in.values()))};
    if (order == 0) {
      std::vector<float> room;
      const float* rows = in.get(begin, end - begin, room);
      std::copy_n(rows, out.values.size(), out.values.begin());
      return out;
    }
    const std::vector<double>& filter = filters_[static_cast<std::size_t>(order - 1)];
    const auto reach = static_cast<std::int64_t>(filter.size() / 2);
    const int below = o_.method == DeltaOptions::Method::regression ? order - 1 : 0;
    // The outermost rows use the fit to the outermost `width` rows.
    const std::int64_t wider = o_.method == DeltaOptions::Method::librosa ? o_.width : reach;
    const Run from = rows_of(in, below, std::max<std::int64_t>(0, begin - wider),
                             std::min(in.rows(), end + wider));
    for (std::int64_t t = begin; t < end; ++t) {
      float* to = out.values.data() + (t - begin) * in.values();
      if (o_.method == DeltaOptions::Method::librosa && (t < reach || t >= in.rows() - reach)) {
        const std::int64_t first = t < reach ? 0 : in.rows() - o_.width;
        const auto place = static_cast<std::size_t>(t - first);
        apply(edges_[static_cast<std::size_t>(order - 1)][place], in, from, first, to);
      } else {
        apply(filter, in, from, t - reach, to);
      }
    }
    return out;
  }

  // Sums rows from `first` on times the filter's values; outside the utterance its end rows are
  // repeated.
  static void apply(const std::vector<double>& filter, const UtteranceRows& in, const Run& from,
                    std::int64_t first, float* to) {
    for (int c = 0; c < in.values(); ++c) {
      double sum = 0.0;
      for (std::size_t i = 0; i < filter.size(); ++i) {
        const std::int64_t row =
            std::clamp<std::int64_t>(first + static_cast<std::int64_t>(i), 0, in.rows() - 1);
        sum +=
            filter[i] * from.values[static_cast<std::size_t>((row - from.first) * in.values() + c)];
      }
      to[c] = static_cast<float>(sum);
    }
  }

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
