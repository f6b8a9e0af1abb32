#include "stages/features/mel/stack_step.h"

#include <algorithm>

namespace melflow {
namespace {

class StackStep final : public FinishStep {
 public:
  explicit StackStep(const StackOptions& options) : o_(options) {}

  [[nodiscard]] bool needs_utterance() const override { return true; }
  [[nodiscard]] int values_out(int values_in) const override { return values_in * o_.frames; }
  [[nodiscard]] std::int64_t rows_out(std::int64_t rows_in) const override {
    return stacked_rows(o_, rows_in);
  }

  void run(const UtteranceRows& in, UtteranceRows& out) const override {
    if (&in == &out) return;  // a single frame, which stays
    // A piece of the input has rows for about as many of the output.
    const std::int64_t piece =
        std::max<std::int64_t>(1, std::min(out.piece(), in.piece() / o_.hop));
    std::vector<float> room, room_out;
    for (std::int64_t first = 0; first < out.rows(); first += piece) {
      const std::int64_t n = std::min(piece, out.rows() - first);
      const std::int64_t begin = std::max<std::int64_t>(0, first * o_.hop - o_.left);
      const std::int64_t end = std::min(in.rows(), (first + n - 1) * o_.hop - o_.left + o_.frames);
      const float* from = in.get(begin, end - begin, room);
      float* to = out.place(first, n, room_out);
      for (std::int64_t r = 0; r < n; ++r)
        for (int f = 0; f < o_.frames; ++f)
          put(frame(in, from, begin, (first + r) * o_.hop - o_.left + f), in.values(), f,
              to + r * out.values());
      out.put(first, n, to);
    }
  }

 private:
  // Returns the values of a frame that `from` has, from frame `begin` on; null for o_.value.
  [[nodiscard]] const float* frame(const UtteranceRows& in, const float* from, std::int64_t begin,
                                   std::int64_t number) const {
    if (number < 0 && o_.head == StackOptions::Head::value) return nullptr;
    if (number >= in.rows() && o_.tail == StackOptions::Tail::value) return nullptr;
    return from + (std::clamp<std::int64_t>(number, 0, in.rows() - 1) - begin) * in.values();
  }
  // Puts frame `f` of the row `to`.
  void put(const float* from, int columns, int f, float* to) const {
    const bool by_frame = o_.order == StackOptions::Order::frame_major;
    to += by_frame ? f * columns : f;
    const std::int64_t step = by_frame ? 1 : o_.frames;
    for (int c = 0; c < columns; ++c)
      to[c * step] = from != nullptr ? from[c] : static_cast<float>(o_.value);
  }

  StackOptions o_;
};

}  // namespace

std::int64_t stacked_rows(const StackOptions& o, std::int64_t rows) {
  if (o.tail != StackOptions::Tail::drop) return (rows + o.hop - 1) / o.hop;
  const std::int64_t behind_first = rows + o.left - o.frames;
  return behind_first < 0 ? 0 : behind_first / o.hop + 1;
}

std::shared_ptr<const FinishStep> stack_step(const StackOptions& options) {
  return std::make_shared<StackStep>(options);
}

}  // namespace melflow
