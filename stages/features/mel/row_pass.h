// row_pass.h - steps on rows that come in the order of time, in pieces.
//
// In:  the rows of one utterance, float [n, values], in pieces of any size.
// Out: after each piece the rows that no later one can change, the others at the end.
//
// The bits of a row depend on the rows alone, not on the pieces. What a step keeps between pieces
// is bounded, however long the utterance is.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "stages/features/mel/utterance_steps.h"

namespace melflow {

// The rows that a pass has to write: [count, values out] to `to`, from row `first` on.
struct RowsOut {
  std::int64_t first = 0, count = 0;
  float* to = nullptr;
  // The rows of the whole utterance that have come in, if no more follow; else -1.
  std::int64_t total = -1;
};

// One step on its way through the rows of one utterance.
class RowPass {
 public:
  RowPass() = default;
  RowPass(const RowPass&) = delete;
  RowPass& operator=(const RowPass&) = delete;
  virtual ~RowPass() = default;
  // Takes the next `count` rows and writes the rows `out`, which follow those written before. If
  // the step keeps width and number of rows, `out.to` may be memory of rows that were taken.
  virtual void take(const float* rows, std::int64_t count, const RowsOut& out) = 0;
  // Takes memory at once, so that take() needs none for pieces of up to `piece` rows, but for the
  // last one.
  virtual void reserve(std::int64_t /*piece*/) {}
};

// A step that can begin before all rows are there. Safe from many threads, as every FinishStep.
class OrderedStep : public FinishStep {
 public:
  [[nodiscard]] bool needs_utterance() const override { return true; }
  // The number of rows that can be written when `seen` rows have come in and more may follow; never
  // more than rows_out(seen).
  [[nodiscard]] virtual std::int64_t rows_ready(std::int64_t seen) const { return seen; }
  // The most rows that have come in and cannot be written yet while more may follow.
  [[nodiscard]] virtual std::int64_t most_held() const { return 0; }
  // The step outlives the pass.
  [[nodiscard]] virtual std::unique_ptr<RowPass> start(int values_in) const = 0;

  void run(const UtteranceRows& in, UtteranceRows& out) const override;
};

// A step that needs all rows, as one that writes nothing before the end: it keeps all rows.
std::shared_ptr<const OrderedStep> at_the_end(std::shared_ptr<const FinishStep> step);

// The rows that a pass may still need: of those that came in earlier pieces, and of the present
// one.
class HeldRows {
 public:
  explicit HeldRows(int values) : values_(static_cast<std::size_t>(values)) {}
  // Adds a piece, which stays where it is until keep().
  void take(const float* rows, std::int64_t count) {
    piece_ = rows;
    end_ += count;
  }
  // Takes memory for pieces of so many rows where up to `held` of earlier ones are needed.
  void reserve(std::int64_t held, std::int64_t piece) { kept_.reserve(at(2 * held + piece)); }
  // Copies what is needed of the piece: rows before number `from` are not needed any more.
  void keep(std::int64_t from);
  // The number of rows that have come in.
  [[nodiscard]] std::int64_t end() const { return end_; }
  [[nodiscard]] const float* row(std::int64_t number) const {
    return number < piece_begin_ ? kept_.data() + at(number - kept_begin_)
                                 : piece_ + at(number - piece_begin_);
  }

 private:
  [[nodiscard]] std::size_t at(std::int64_t rows) const {
    return static_cast<std::size_t>(rows) * values_;
  }

  std::size_t values_;
  std::vector<float> kept_;  // rows [kept_begin_, piece_begin_)
  std::int64_t kept_begin_ = 0, piece_begin_ = 0, end_ = 0;
  const float* piece_ = nullptr;  // rows [piece_begin_, end_)
};

}  // namespace melflow
