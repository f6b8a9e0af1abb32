#include "stages/features/mel/row_pass.h"

#include <algorithm>
#include <utility>

namespace melflow {
namespace {

// Of an utterance in memory, so that a pass holds copies of a small part of it only.
constexpr std::int64_t kPieceValues = 1 << 16;

class WholeStep final : public OrderedStep {
 public:
  explicit WholeStep(std::shared_ptr<const FinishStep> step) : step_(std::move(step)) {}
  [[nodiscard]] int values_out(int values_in) const override {
    return step_->values_out(values_in);
  }
  [[nodiscard]] std::int64_t rows_out(std::int64_t rows_in) const override {
    return step_->rows_out(rows_in);
  }
  [[nodiscard]] std::int64_t rows_ready(std::int64_t) const override { return 0; }
  [[nodiscard]] std::unique_ptr<RowPass> start(int values_in) const override {
    return std::make_unique<Pass>(*step_, values_in);
  }
  void run(const UtteranceRows& in, UtteranceRows& out) const override { step_->run(in, out); }

 private:
  class Pass final : public RowPass {
   public:
    Pass(const FinishStep& step, int values) : step_(step), values_(values) {}
    void take(const float* rows, std::int64_t count, const RowsOut& out) override {
      all_.insert(all_.end(), rows, rows + count * values_);
      if (out.total <= 0) return;
      MemoryRows in(all_.data(), out.total, values_);
      MemoryRows result(out.to, out.count, step_.values_out(values_));
      step_.run(in, result);
    }

   private:
    const FinishStep& step_;
    const int values_;
    std::vector<float> all_;
  };

  std::shared_ptr<const FinishStep> step_;
};

}  // namespace

void OrderedStep::run(const UtteranceRows& in, UtteranceRows& out) const {
  const auto pass = start(in.values());
  const std::int64_t piece =
      std::max<std::int64_t>(1, std::min<std::int64_t>(in.piece(), kPieceValues / in.values()));
  std::vector<float> room, room_out;
  std::int64_t made = 0;
  for (std::int64_t seen = 0; seen < in.rows() || made < out.rows();) {
    const std::int64_t n = std::min(piece, in.rows() - seen);
    const float* rows = n > 0 ? in.get(seen, n, room) : nullptr;
    seen += n;
    const bool is_all = seen == in.rows();
    const std::int64_t ready = is_all ? std::min(out.rows(), made + piece) : rows_ready(seen);
    const RowsOut next{made, ready - made,
                       ready > made ? out.place(made, ready - made, room_out) : nullptr,
                       is_all ? in.rows() : -1};
    pass->take(rows, n, next);
    if (next.count > 0) out.put(made, next.count, next.to);
    made = ready;
  }
}

std::shared_ptr<const OrderedStep> at_the_end(std::shared_ptr<const FinishStep> step) {
  return std::make_shared<WholeStep>(std::move(step));
}

void HeldRows::keep(std::int64_t from) {
  from = std::clamp(from, kept_begin_, end_);
  if (from >= piece_begin_) {
    kept_.clear();
    kept_begin_ = from;
  } else if (at(from - kept_begin_) > kept_.size() / 2) {  // so that each row is moved about once
    kept_.erase(kept_.begin(), kept_.begin() + static_cast<std::ptrdiff_t>(at(from - kept_begin_)));
    kept_begin_ = from;
  }
  const std::int64_t first = std::max(kept_begin_, piece_begin_);
  if (end_ > first) kept_.insert(kept_.end(), row(first), piece_ + at(end_ - piece_begin_));
  piece_begin_ = end_;
  piece_ = nullptr;
}

}  // namespace melflow
