#include "stages/features/mel/sliding_step.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "stages/features/mel/row_pass.h"

namespace melflow {
namespace {

constexpr double kLeastVariance = 1e-10;

// The rows of a window and their sums. Rows are copied, as those that came may be overwritten.
class Window {
 public:
  Window(int columns, std::int64_t most_rows)
      : columns_(static_cast<std::size_t>(columns)),
        most_(static_cast<std::size_t>(most_rows)),
        sum_(columns_),
        squares_(columns_) {}

  void reserve() { held_.reserve(most_ * columns_); }
  // Adds a row to those that the window can reach.
  void add(const float* row) {
    const std::size_t at = place(seen_++);
    if (at == held_.size()) held_.resize(at + columns_);  // until it is full
    std::copy_n(row, columns_, held_.data() + at);
  }
  void move_to(std::int64_t begin, std::int64_t end) {
    for (; begin_ < begin; ++begin_) count(row(begin_), -1.0);
    for (; end_ < end; ++end_) count(row(end_), 1.0);
  }
  [[nodiscard]] const float* row(std::int64_t r) const { return held_.data() + place(r); }
  [[nodiscard]] std::int64_t seen() const { return seen_; }
  [[nodiscard]] double mean(std::size_t c) const { return sum_[c] / size(); }
  [[nodiscard]] double variance(std::size_t c) const {
    return squares_[c] / size() - mean(c) * mean(c);
  }
  [[nodiscard]] double size() const { return static_cast<double>(end_ - begin_); }

 private:
  [[nodiscard]] std::size_t place(std::int64_t r) const {
    return static_cast<std::size_t>(r) % most_ * columns_;
  }
  void count(const float* row, double sign) {
    for (std::size_t c = 0; c < columns_; ++c) {
      const double x = row[c];
      sum_[c] += sign * x;
      squares_[c] += sign * (x * x);
    }
  }

  const std::size_t columns_, most_;
  std::vector<float> held_;  // the last most_ rows
  std::int64_t begin_ = 0, end_ = 0, seen_ = 0;
  std::vector<double> sum_, squares_;
};

class SlidingStep final : public OrderedStep {
 public:
  explicit SlidingStep(const SlidingOptions& options) : o_(options) {}

  [[nodiscard]] std::int64_t rows_ready(std::int64_t seen) const override {
    if (seen < (o_.center ? o_.window : o_.min_window)) return 0;
    return o_.center ? seen - o_.window + o_.window / 2 + 1 : seen;
  }
  [[nodiscard]] std::int64_t most_held() const override {
    return o_.center ? o_.window : o_.min_window;
  }
  [[nodiscard]] std::unique_ptr<RowPass> start(int values_in) const override {
    return std::make_unique<Pass>(*this, values_in);
  }

 private:
  class Pass final : public RowPass {
   public:
    // A window has window + 1 rows at most, and one more is there before it moves on.
    Pass(const SlidingStep& step, int values)
        : step_(step),
          columns_(static_cast<std::size_t>(values)),
          window_(values, step.o_.window + 2) {}

    void reserve(std::int64_t) override { window_.reserve(); }
    void take(const float* rows, std::int64_t count, const RowsOut& out) override {
      const std::int64_t end = out.first + out.count;
      std::int64_t row = out.first;
      float* to = out.to;
      for (std::int64_t r = 0; r < count; ++r) {
        window_.add(rows + static_cast<std::size_t>(r) * columns_);
        const std::int64_t ready = std::min(end, step_.rows_ready(window_.seen()));
        for (; row < ready; ++row, to += columns_) write(row, kUnknown, to);
      }
      for (; row < end; ++row, to += columns_) write(row, out.total, to);
    }

   private:
    static constexpr std::int64_t kUnknown = std::int64_t{1} << 60;  // rows, while more may follow

    void write(std::int64_t row, std::int64_t rows, float* to) {
      const auto [begin, end] = sliding_window(step_.o_, row, rows);
      window_.move_to(begin, end);
      const float* from = window_.row(row);
      for (std::size_t c = 0; c < columns_; ++c) to[c] = step_.scaled(from[c], window_, c);
    }

    const SlidingStep& step_;
    const std::size_t columns_;
    Window window_;
  };

  [[nodiscard]] float scaled(float x, const Window& window, std::size_t c) const {
    const double centred = x - window.mean(c);
    if (!o_.variance) return static_cast<float>(centred);
    if (window.size() == 1) return 0.0F;
    return static_cast<float>(centred / std::sqrt(std::max(kLeastVariance, window.variance(c))));
  }

  SlidingOptions o_;
};

}  // namespace

std::pair<std::int64_t, std::int64_t> sliding_window(const SlidingOptions& o, std::int64_t t,
                                                     std::int64_t rows) {
  if (o.center) {
    const std::int64_t last_begin = std::max<std::int64_t>(0, rows - o.window);
    const std::int64_t begin = std::clamp<std::int64_t>(t - o.window / 2, 0, last_begin);
    return {begin, std::min<std::int64_t>(begin + o.window, rows)};
  }
  const std::int64_t least = std::min<std::int64_t>(o.min_window, rows);
  return {std::max<std::int64_t>(0, t - o.window), std::max(t + 1, least)};
}

std::shared_ptr<const FinishStep> sliding_step(const SlidingOptions& options) {
  return std::make_shared<SlidingStep>(options);
}

}  // namespace melflow
