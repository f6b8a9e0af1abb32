#include "stages/features/mel/utterance_steps.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "stages/features/mel/row_pass.h"

namespace melflow {
namespace {

// Calls visit(row values, rows) over all rows in order.
template <class Visit>
void over_rows(const UtteranceRows& in, const Visit& visit) {
  std::vector<float> room;
  for (std::int64_t first = 0; first < in.rows(); first += in.piece()) {
    const std::int64_t n = std::min(in.piece(), in.rows() - first);
    visit(in.get(first, n, room), n);
  }
}

// Calls change(from, to, rows) over all rows in order; the widths are those of in and out.
template <class Change>
void change_rows(const UtteranceRows& in, UtteranceRows& out, const Change& change) {
  std::vector<float> room, room_out;
  for (std::int64_t first = 0; first < in.rows(); first += in.piece()) {
    const std::int64_t n = std::min(in.piece(), in.rows() - first);
    const float* from = in.get(first, n, room);
    float* to = out.place(first, n, room_out);
    change(from, to, n);
    out.put(first, n, to);
  }
}

class LevelStep final : public FinishStep {
 public:
  LevelStep(bool ref_max, std::optional<float> range) : ref_max_(ref_max), range_(range) {}
  [[nodiscard]] bool needs_utterance() const override { return true; }

  void run(const UtteranceRows& in, UtteranceRows& out) const override {
    float largest = -std::numeric_limits<float>::infinity();
    over_rows(in, [&](const float* values, std::int64_t n) {
      const std::int64_t count = n * in.values();
      for (std::int64_t i = 0; i < count; ++i)
        if (values[i] > largest && values[i] <= std::numeric_limits<float>::max())
          largest = values[i];
    });
    const float shift = ref_max_ ? largest : 0.0F;
    const float floor =
        range_ ? largest - shift - *range_ : -std::numeric_limits<float>::infinity();
    change_rows(in, out, [&](const float* from, float* to, std::int64_t n) {
      const std::int64_t count = n * in.values();
      for (std::int64_t i = 0; i < count; ++i) {
        const float shifted = from[i] - shift;
        to[i] = shifted < floor ? floor : shifted;  // NaN stays
      }
    });
  }

 private:
  bool ref_max_;
  std::optional<float> range_;
};

// (from - mean) / divisor, column by column; mean and divisor [columns].
class ScalePass final : public RowPass {
 public:
  ScalePass(std::vector<double> mean, std::vector<double> divisor)
      : mean_(std::move(mean)), divisor_(std::move(divisor)) {}
  void take(const float* rows, std::int64_t count, const RowsOut& out) override {
    const std::size_t columns = mean_.size();
    float* to = out.to;
    for (std::int64_t r = 0; r < count; ++r, rows += columns, to += columns)
      for (std::size_t c = 0; c < columns; ++c)
        to[c] = static_cast<float>((rows[c] - mean_[c]) / divisor_[c]);
  }

 private:
  std::vector<double> mean_, divisor_;
};

std::vector<double> spread(const std::vector<double>& values, int columns, double fallback) {
  if (values.size() == static_cast<std::size_t>(columns)) return values;
  return std::vector<double>(static_cast<std::size_t>(columns),
                             values.empty() ? fallback : values.front());
}

class FixedStep final : public OrderedStep {
 public:
  FixedStep(std::vector<double> mean, std::vector<double> std)
      : mean_(std::move(mean)), std_(std::move(std)) {}
  [[nodiscard]] bool needs_utterance() const override { return false; }
  [[nodiscard]] std::unique_ptr<RowPass> start(int values_in) const override {
    return std::make_unique<ScalePass>(spread(mean_, values_in, 0.0), spread(std_, values_in, 1.0));
  }

 private:
  std::vector<double> mean_, std_;
};

class StatisticsStep final : public FinishStep {
 public:
  explicit StatisticsStep(const StatisticsOptions& options) : o_(options) {}
  [[nodiscard]] bool needs_utterance() const override { return true; }

  void run(const UtteranceRows& in, UtteranceRows& out) const override {
    const auto columns = static_cast<std::size_t>(in.values());
    std::vector<double> mean(columns, 0.0), divisor(columns, 1.0);
    const double count =
        static_cast<double>(in.rows()) * (o_.per_column ? 1.0 : static_cast<double>(columns));
    sum(in, mean, [](float x, double) { return static_cast<double>(x); });
    merge(mean);
    for (double& m : mean) m /= count;
    if (o_.variance) {
      std::vector<double> squares = mean;
      sum(in, squares, [](float x, double m) { return (x - m) * (x - m); });
      merge(squares);
      for (std::size_t c = 0; c < columns; ++c)
        divisor[c] = deviation(count > o_.ddof ? squares[c] / (count - o_.ddof) : 0.0);
    }
    // Without eps, equal values have nothing to scale.
    for (double& d : divisor)
      if (d == 0.0) d = 1.0;
    ScalePass scale(std::move(mean), std::move(divisor));
    change_rows(in, out, [&](const float* from, float* to, std::int64_t n) {
      scale.take(from, n, {.count = n, .to = to});
    });
  }

 private:
  [[nodiscard]] double deviation(double variance) const {
    return o_.eps_in_root ? std::sqrt(variance + o_.eps) : std::sqrt(variance) + o_.eps;
  }
  // Sums term(value, previous totals) of each column into totals, row after row.
  template <class Term>
  static void sum(const UtteranceRows& in, std::vector<double>& totals, const Term& term) {
    const std::vector<double> given = totals;
    std::fill(totals.begin(), totals.end(), 0.0);
    over_rows(in, [&](const float* values, std::int64_t n) {
      for (std::int64_t r = 0; r < n; ++r, values += totals.size())
        for (std::size_t c = 0; c < totals.size(); ++c) totals[c] += term(values[c], given[c]);
    });
  }
  void merge(std::vector<double>& totals) const {
    if (o_.per_column) return;
    double all = 0.0;
    for (const double t : totals) all += t;
    std::fill(totals.begin(), totals.end(), all);
  }

  StatisticsOptions o_;
};

}  // namespace

UtteranceSteps UtteranceSteps::of_mel(const MelOptions& o) {
  using Normalize = MelOptions::Normalize;
  UtteranceSteps finish;
  if (o.ref.is_max || o.top_db) {
    std::optional<float> range;
    if (o.top_db) {
      // From decibels to the unit of the log: a decade is 20/power dB.
      const double decades = *o.top_db * o.power / 20.0;
      range = static_cast<float>(o.log == MelOptions::Log::db      ? *o.top_db
                                 : o.log == MelOptions::Log::log10 ? decades
                                                                   : decades * std::numbers::ln10);
    }
    finish.add(level_step(o.ref.is_max, range));
  }
  if (o.normalize == Normalize::fixed) {
    finish.add(fixed_step(o.norm_mean, o.norm_variance ? o.norm_std : std::vector<double>{}));
  } else if (o.normalize != Normalize::none) {
    finish.add(statistics_step({.per_column = o.normalize == Normalize::per_feature,
                                .variance = o.norm_variance,
                                .eps = o.norm_eps,
                                .eps_in_root = o.norm_eps_to == MelOptions::NormEpsTo::variance,
                                .ddof = o.norm_ddof}));
  }
  return finish;
}

bool UtteranceSteps::needs_utterance() const {
  return std::any_of(steps_.begin(), steps_.end(),
                     [](const auto& s) { return s->needs_utterance(); });
}

std::int64_t UtteranceSteps::rows_out(std::int64_t rows_in) const {
  for (const auto& step : steps_) rows_in = step->rows_out(rows_in);
  return rows_in;
}

void UtteranceSteps::apply(float* data, std::int64_t rows, int values) const {
  if (rows == 0) return;
  MemoryRows utterance(data, rows, values);
  for (const auto& step : steps_) step->run(utterance, utterance);
}

std::shared_ptr<const FinishStep> level_step(bool ref_max, std::optional<float> range) {
  return std::make_shared<LevelStep>(ref_max, range);
}

std::shared_ptr<const FinishStep> fixed_step(std::vector<double> mean, std::vector<double> std) {
  return std::make_shared<FixedStep>(std::move(mean), std::move(std));
}

std::shared_ptr<const FinishStep> statistics_step(const StatisticsOptions& options) {
  return std::make_shared<StatisticsStep>(options);
}

}  // namespace melflow
