#include "stages/features/mel/fit_step.h"

#include <algorithm>

namespace melflow {
namespace {

class FitStep final : public FinishStep {
 public:
  explicit FitStep(const FitOptions& options) : o_(options) {}

  [[nodiscard]] bool needs_utterance() const override { return true; }
  [[nodiscard]] std::int64_t rows_out(std::int64_t rows_in) const override {
    return fitted_rows(o_, rows_in);
  }

  void run(const UtteranceRows& in, UtteranceRows& out) const override {
    if (&in == &out) return;
    const std::int64_t piece = std::max<std::int64_t>(1, std::min(in.piece(), out.piece()));
    std::vector<float> room, room_out;
    for (std::int64_t first = 0; first < out.rows(); first += piece) {
      const std::int64_t n = std::min(piece, out.rows() - first);
      const std::int64_t there = std::clamp<std::int64_t>(in.rows() - first, 0, n);
      float* to = out.place(first, n, room_out);
      if (there > 0) std::copy_n(in.get(first, there, room), there * in.values(), to);
      std::fill(to + there * in.values(), to + n * in.values(), static_cast<float>(o_.value));
      out.put(first, n, to);
    }
  }

 private:
  FitOptions o_;
};

}  // namespace

std::int64_t fitted_rows(const FitOptions& o, std::int64_t rows) {
  if (o.rows > 0) return o.rows;
  const std::int64_t up = o.rest == FitOptions::Rest::fill ? o.multiple - 1 : 0;
  return (rows + o.extra + up) / o.multiple * o.multiple;
}

std::shared_ptr<const FinishStep> fit_step(const FitOptions& options) {
  return std::make_shared<FitStep>(options);
}

}  // namespace melflow
