#include "stages/features/mel/sliding_step.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace melflow {
namespace {

constexpr double kLeastVariance = 1e-10;

// The rows of a window and their sums. Rows are copied, as those of the input may be overwritten.
class Window {
 public:
  Window(const UtteranceRows& in, std::int64_t most_rows)
      : in_(in),
        columns_(static_cast<std::size_t>(in.values())),
        held_(static_cast<std::size_t>(most_rows) * columns_),
        most_(most_rows),
        sum_(columns_),
        squares_(columns_) {}

  void move_to(std::int64_t begin, std::int64_t end) {
    for (; begin_ < begin; ++begin_) add(row(begin_), -1.0);
    for (; end_ < end; ++end_) {
      if (end_ == read_end_) read();
      const float* from = piece_ + static_cast<std::size_t>(end_ - read_begin_) * columns_;
      std::copy_n(from, columns_, place(end_));
      add(row(end_), 1.0);
    }
  }
  [[nodiscard]] const float* row(std::int64_t r) const {
    return held_.data() + static_cast<std::size_t>(r % most_) * columns_;
  }
  [[nodiscard]] double mean(std::size_t c) const { return sum_[c] / count(); }
  [[nodiscard]] double variance(std::size_t c) const {
    return squares_[c] / count() - mean(c) * mean(c);
  }
  [[nodiscard]] double count() const { return static_cast<double>(end_ - begin_); }

 private:
  float* place(std::int64_t r) {
    return held_.data() + static_cast<std::size_t>(r % most_) * columns_;
  }
  void add(const float* row, double sign) {
    for (std::size_t c = 0; c < columns_; ++c) {
      const double x = row[c];
      sum_[c] += sign * x;
      squares_[c] += sign * (x * x);
    }
  }
  void read() {
    read_begin_ = read_end_;
    read_end_ = std::min(in_.rows(), read_begin_ + in_.piece());
    piece_ = in_.get(read_begin_, read_end_ - read_begin_, room_);
  }

  const UtteranceRows& in_;
  std::size_t columns_;
  std::vector<float> held_;  // row r at r % most_
  std::int64_t most_, begin_ = 0, end_ = 0;
  std::vector<double> sum_, squares_;
  std::int64_t read_begin_ = 0, read_end_ = 0;  // rows of piece_
  const float* piece_ = nullptr;
  std::vector<float> room_;
};

class SlidingStep final : public FinishStep {
 public:
  explicit SlidingStep(const SlidingOptions& options) : o_(options) {}

  [[nodiscard]] bool needs_utterance() const override { return true; }

  void run(const UtteranceRows& in, UtteranceRows& out) const override {
    const auto columns = static_cast<std::size_t>(in.values());
    Window window(in, std::min<std::int64_t>(in.rows(), std::max(o_.window + 1, o_.min_window)));
    std::vector<float> room;
    for (std::int64_t first = 0; first < in.rows(); first += in.piece()) {
      const std::int64_t n = std::min(in.piece(), in.rows() - first);
      float* to = out.place(first, n, room);
      for (std::int64_t r = 0; r < n; ++r, to += columns) {
        const auto [begin, end] = sliding_window(o_, first + r, in.rows());
        window.move_to(begin, end);
        const float* from = window.row(first + r);
        for (std::size_t c = 0; c < columns; ++c) to[c] = scaled(from[c], window, c);
      }
      out.put(first, n, to - static_cast<std::size_t>(n) * columns);
    }
  }

 private:
  [[nodiscard]] float scaled(float x, const Window& window, std::size_t c) const {
    const double centred = x - window.mean(c);
    if (!o_.variance) return static_cast<float>(centred);
    if (window.count() == 1) return 0.0F;
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
