// utterance_steps.h - steps that need all rows of an utterance, or are simplest when all are known.
//
// In:  an utterance's rows (a file's or one segment's frames), float [rows, values], in memory or
//      in a file, in the order of time.
// Out: the same number of rows, changed by one step after another, perhaps with other widths.
//
// A step sees the rows only through UtteranceRows and goes over them in one order, so the result
// does not depend on where they lie, on the pieces they come in, or on the blocks that made them.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "stages/features/mel/mel_options.h"

namespace melflow {

// The rows of one utterance, float [rows, values].
class UtteranceRows {
 public:
  UtteranceRows(std::int64_t rows, int values) : rows_(rows), values_(values) {}
  UtteranceRows(const UtteranceRows&) = delete;
  UtteranceRows& operator=(const UtteranceRows&) = delete;
  virtual ~UtteranceRows() = default;

  [[nodiscard]] std::int64_t rows() const { return rows_; }
  [[nodiscard]] int values() const { return values_; }
  // How many rows to ask for at once.
  [[nodiscard]] virtual std::int64_t piece() const = 0;
  // Rows [first, first + count): where they lie, or copied to `room`.
  virtual const float* get(std::int64_t first, std::int64_t count,
                           std::vector<float>& room) const = 0;
  // Where to put rows [first, first + count) before put(); may be where get() found them.
  virtual float* place(std::int64_t first, std::int64_t count, std::vector<float>& room) = 0;
  // Stores rows [first, first + count) from values [count, values()], which place() gave.
  virtual void put(std::int64_t first, std::int64_t count, const float* values) = 0;

 private:
  std::int64_t rows_;
  int values_;
};

// Rows in memory, all of them one piece.
class MemoryRows final : public UtteranceRows {
 public:
  MemoryRows(float* data, std::int64_t rows, int values)
      : UtteranceRows(rows, values), data_(data) {}
  [[nodiscard]] std::int64_t piece() const override { return rows(); }
  const float* get(std::int64_t first, std::int64_t, std::vector<float>&) const override {
    return data_ + first * values();
  }
  float* place(std::int64_t first, std::int64_t, std::vector<float>&) override {
    return data_ + first * values();
  }
  void put(std::int64_t, std::int64_t, const float*) override {}

 private:
  float* data_;
};

// One step on the rows of an utterance. It keeps no state between runs: safe from many threads.
class FinishStep {
 public:
  FinishStep() = default;
  FinishStep(const FinishStep&) = delete;
  FinishStep& operator=(const FinishStep&) = delete;
  virtual ~FinishStep() = default;

  // False: a row's result depends on that row alone.
  [[nodiscard]] virtual bool needs_utterance() const = 0;
  // The width of a row after the step.
  [[nodiscard]] virtual int values_out(int values_in) const { return values_in; }
  // `in` and `out` are the same object when the width stays.
  virtual void run(const UtteranceRows& in, UtteranceRows& out) const = 0;
};

// Steps one after another.
class UtteranceSteps {
 public:
  // Reference = maximum, top_db and normalisation, as the options ask for.
  static UtteranceSteps of_mel(const MelOptions& options);

  void add(std::shared_ptr<const FinishStep> step) { steps_.push_back(std::move(step)); }
  [[nodiscard]] bool empty() const { return steps_.empty(); }
  [[nodiscard]] bool needs_utterance() const;
  [[nodiscard]] std::span<const std::shared_ptr<const FinishStep>> steps() const { return steps_; }
  // In place: every step keeps the width. `data` [rows, values].
  void apply(float* data, std::int64_t rows, int values) const;

 private:
  std::vector<std::shared_ptr<const FinishStep>> steps_;
};

// Levels relative to the utterance's maximum: with ref_max the maximum becomes 0; with `range` no
// level stays more than that below the maximum [unit of the rows]. As
// librosa.power_to_db(ref=np.max, top_db=...) and torchaudio's AmplitudeToDB. NaN stays NaN.
std::shared_ptr<const FinishStep> level_step(bool ref_max, std::optional<float> range);

// (x - mean) / std by given statistics, one or one for each column; empty std: 1.
std::shared_ptr<const FinishStep> fixed_step(std::vector<double> mean, std::vector<double> std);

// What statistics_step() computes and divides by.
struct StatisticsOptions {
  bool per_column = true;  // false: statistics of all values
  bool variance = true;    // false: only the mean is subtracted
  double eps = 0.0;
  bool eps_in_root = false;
  int ddof = 1;
};
// With the utterance's own mean m and v = sum (x - m)^2 / (n - ddof), 0 for n = ddof:
// (x - m) / (sqrt(v) + eps), or with eps_in_root (x - m) / sqrt(v + eps). NeMo's normalize_batch
// (ddof 1); Transformers' SeamlessM4TFeatureExtractor (ddof 1, eps in the root) and
// Speech2TextFeatureExtractor.utterance_cmvn (ddof 0, no eps); Kaldi's apply-cmvn --norm-vars and
// ESPnet's utterance_mvn (ddof 0, no eps). Where it would divide by 0 it divides by 1.
std::shared_ptr<const FinishStep> statistics_step(const StatisticsOptions& options);

}  // namespace melflow
