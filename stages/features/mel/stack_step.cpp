#include "stages/features/mel/stack_step.h"

#include <algorithm>

#include "stages/features/mel/row_pass.h"

namespace melflow {
namespace {

std::int64_t hop_of(const StackOptions& o) { return o.hop.value_or(o.frames); }

class StackPass final : public RowPass {
 public:
  StackPass(const StackOptions& options, int values)
      : o_(options), hop_(hop_of(options)), values_(values), held_(values) {}

  void reserve(std::int64_t piece) override { held_.reserve(o_.frames + hop_, piece); }
  void take(const float* rows, std::int64_t count, const RowsOut& out) override {
    held_.take(rows, count);
    float* to = out.to;
    for (std::int64_t r = out.first; r < out.first + out.count; ++r, to += values_ * o_.frames)
      for (int f = 0; f < o_.frames; ++f) put(frame(r * hop_ - o_.left + f, out.total), f, to);
    held_.keep((out.first + out.count) * hop_ - o_.left);
  }

 private:
  // Returns the values of a frame; null for o_.value. `total`: of the frames, -1 while more follow.
  [[nodiscard]] const float* frame(std::int64_t number, std::int64_t total) const {
    if (number < 0 && o_.head == StackOptions::Head::value) return nullptr;
    if (total < 0) return held_.row(std::max<std::int64_t>(number, 0));
    if (number >= total && o_.tail == StackOptions::Tail::value) return nullptr;
    return held_.row(std::clamp<std::int64_t>(number, 0, total - 1));
  }
  // Puts frame `f` of the row `to`.
  void put(const float* from, int f, float* to) const {
    const bool by_frame = o_.order == StackOptions::Order::frame_major;
    to += by_frame ? f * values_ : f;
    const std::int64_t step = by_frame ? 1 : o_.frames;
    for (int c = 0; c < values_; ++c)
      to[c * step] = from != nullptr ? from[c] : static_cast<float>(o_.value);
  }

  const StackOptions o_;
  const std::int64_t hop_;
  const int values_;
  HeldRows held_;
};

class StackStep final : public OrderedStep {
 public:
  explicit StackStep(const StackOptions& options) : o_(options), hop_(hop_of(options)) {}

  [[nodiscard]] int values_out(int values_in) const override { return values_in * o_.frames; }
  [[nodiscard]] std::int64_t rows_out(std::int64_t rows_in) const override {
    return stacked_rows(o_, rows_in);
  }
  // Those whose frames are all there.
  [[nodiscard]] std::int64_t rows_ready(std::int64_t seen) const override {
    const std::int64_t behind_first = seen + o_.left - o_.frames;
    return seen == 0 || behind_first < 0 ? 0 : behind_first / hop_ + 1;
  }
  [[nodiscard]] std::int64_t most_held() const override { return o_.frames + hop_; }
  [[nodiscard]] std::unique_ptr<RowPass> start(int values_in) const override {
    return std::make_unique<StackPass>(o_, values_in);
  }

 private:
  StackOptions o_;
  std::int64_t hop_;
};

}  // namespace

std::int64_t stacked_rows(const StackOptions& o, std::int64_t rows) {
  if (o.tail != StackOptions::Tail::drop) return (rows + hop_of(o) - 1) / hop_of(o);
  const std::int64_t behind_first = rows + o.left - o.frames;
  return behind_first < 0 ? 0 : behind_first / hop_of(o) + 1;
}

std::shared_ptr<const FinishStep> stack_step(const StackOptions& options) {
  return std::make_shared<StackStep>(options);
}

}  // namespace melflow
