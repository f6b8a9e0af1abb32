#include "stages/features/column_step.h"

#include <algorithm>
#include <utility>

namespace melflow {
namespace {

void copy_columns(const float* from, int from_width, float* to, int to_width, int count,
                  std::int64_t rows) {
  for (std::int64_t r = 0; r < rows; ++r, from += from_width, to += to_width)
    std::copy_n(from, count, to);
}

// A range of columns, as rows of their own.
class Columns final : public UtteranceRows {
 public:
  // For reading only if `to` is null.
  Columns(const UtteranceRows& rows, UtteranceRows* to, int first, int count)
      : UtteranceRows(rows.rows(), count), rows_(rows), to_(to), first_(first) {}

  [[nodiscard]] std::int64_t piece() const override { return rows_.piece(); }
  const float* get(std::int64_t first, std::int64_t count,
                   std::vector<float>& room) const override {
    std::vector<float> whole;
    const float* from = rows_.get(first, count, whole);
    float* to = room_for(count, room);
    copy_columns(from + first_, rows_.values(), to, values(), values(), count);
    return to;
  }
  float* place(std::int64_t, std::int64_t count, std::vector<float>& room) override {
    return room_for(count, room);
  }
  void put(std::int64_t first, std::int64_t count, const float* from) override {
    std::vector<float> there, room;
    const float* whole = rows_.get(first, count, there);
    float* to = to_->place(first, count, room);
    if (to != whole) copy_columns(whole, rows_.values(), to, rows_.values(), rows_.values(), count);
    copy_columns(from, values(), to + first_, rows_.values(), values(), count);
    to_->put(first, count, to);
  }

 private:
  float* room_for(std::int64_t count, std::vector<float>& room) const {
    room.resize(static_cast<std::size_t>(count) * static_cast<std::size_t>(values()));
    return room.data();
  }

  const UtteranceRows& rows_;
  UtteranceRows* const to_;  // where to write them; may be null
  const int first_;
};

class ColumnStep final : public FinishStep {
 public:
  ColumnStep(std::shared_ptr<const FinishStep> step, int first, int count)
      : step_(std::move(step)), first_(first), count_(count) {}
  [[nodiscard]] bool needs_utterance() const override { return step_->needs_utterance(); }
  [[nodiscard]] int values_out(int values_in) const override {
    return values_in - count_ + step_->values_out(count_);
  }
  void run(const UtteranceRows& in, UtteranceRows& out) const override {
    if (&in == &out) {
      Columns mine(out, &out, first_, count_);
      return step_->run(mine, mine);
    }
    put_others(in, out);
    const Columns from(in, nullptr, first_, count_);
    Columns to(out, &out, first_, step_->values_out(count_));
    step_->run(from, to);
  }

 private:
  void put_others(const UtteranceRows& in, UtteranceRows& out) const {
    const int behind = first_ + count_, behind_out = first_ + step_->values_out(count_);
    std::vector<float> room, room_out;
    for (std::int64_t first = 0; first < in.rows(); first += in.piece()) {
      const std::int64_t n = std::min(in.piece(), in.rows() - first);
      const float* from = in.get(first, n, room);
      float* to = out.place(first, n, room_out);
      for (std::int64_t r = 0; r < n; ++r) {
        const float* a = from + r * in.values();
        float* b = to + r * out.values();
        std::copy(a, a + first_, b);
        std::fill(b + first_, b + behind_out, 0.0F);
        std::copy(a + behind, a + in.values(), b + behind_out);
      }
      out.put(first, n, to);
    }
  }

  std::shared_ptr<const FinishStep> step_;
  const int first_, count_;
};

}  // namespace

std::shared_ptr<const FinishStep> column_step(std::shared_ptr<const FinishStep> step, int first,
                                              int count) {
  return std::make_shared<ColumnStep>(std::move(step), first, count);
}

}  // namespace melflow
