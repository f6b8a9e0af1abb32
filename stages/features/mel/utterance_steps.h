// utterance_steps.h - steps that need all rows of an utterance, or are simplest with all of them.
//
// In:  an utterance's rows (a file's or one segment's frames), float [rows, values], in memory or
//      in a file, in the order of time.
// Out: the rows, changed by one step after another, perhaps with other widths and in another
//      number.
//
// A step accesses the rows only through UtteranceRows and in one order, so the result does not
// depend on their location, on the size of pieces, or on the blocks that made them.
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
  // The number of rows to request at once.
  [[nodiscard]] virtual std::int64_t piece() const = 0;
  // Returns rows [first, first + count): in place, or copied to `room`.
  virtual const float* get(std::int64_t first, std::int64_t count,
                           std::vector<float>& room) const = 0;
  // Returns memory for rows [first, first + count) before put(); may be that which get() returned.
  virtual float* place(std::int64_t first, std::int64_t count, std::vector<float>& room) = 0;
  // Stores rows [first, first + count) from values [count, values()], in memory from place().
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

  // Whether a row's result depends on other rows.
  [[nodiscard]] virtual bool needs_utterance() const = 0;
  // The width of a row after the step.
  [[nodiscard]] virtual int values_out(int values_in) const { return values_in; }
  // The number of rows after the step, for at least one row before it.
  [[nodiscard]] virtual std::int64_t rows_out(std::int64_t rows_in) const { return rows_in; }
  // `in` and `out` are the same object if neither the width nor the number of rows changes.
  virtual void run(const UtteranceRows& in, UtteranceRows& out) const = 0;
};

// Steps one after another.
class UtteranceSteps {
 public:
  // Reference = maximum, top_db and normalisation, as set in the options.
  static UtteranceSteps of_mel(const MelOptions& options);

  void add(std::shared_ptr<const FinishStep> step) { steps_.push_back(std::move(step)); }
  [[nodiscard]] bool empty() const { return steps_.empty(); }
  [[nodiscard]] bool needs_utterance() const;
  // The number of rows after all steps.
  [[nodiscard]] std::int64_t rows_out(std::int64_t rows_in) const;
  [[nodiscard]] std::span<const std::shared_ptr<const FinishStep>> steps() const { return steps_; }
  // Works in place: every step keeps the width and the number of rows. `data` [rows, values].
  void apply(float* data, std::int64_t rows, int values) const;

 private:
  std::vector<std::shared_ptr<const FinishStep>> steps_;
};

// Makes levels relative to the utterance's maximum: with ref_max the maximum becomes 0; with
// `range` no level is more than that below the maximum [unit of the rows]. Same as
// librosa.power_to_db(ref=np.max, top_db=...) and torchaudio's AmplitudeToDB. NaN stays NaN.
std::shared_ptr<const FinishStep> level_step(bool ref_max, std::optional<float> range);

// (x - mean) / std by given statistics, one value or one for each column; empty std: 1.
std::shared_ptr<const FinishStep> fixed_step(std::vector<double> mean, std::vector<double> std);

// The statistics that statistics_step() computes and divides by.
struct StatisticsOptions {
  bool per_column = true;  // false: statistics of all values
  bool variance = true;    // false: only the mean is subtracted
  double eps = 0.0;
  bool eps_in_root = false;
  int ddof = 1;
};
// With the utterance's own mean m and v = sum (x - m)^2 / (n - ddof), 0 for n = ddof: (x - m) /
// (sqrt(v) + eps), or with eps_in_root (x - m) / sqrt(v + eps). NeMo's normalize_batch (ddof 1);
// Transformers' SeamlessM4TFeatureExtractor (ddof 1, eps in the root) and
// Speech2TextFeatureExtractor.utterance_cmvn (ddof 0, no eps); Kaldi's apply-cmvn --norm-vars and
// ESPnet's utterance_mvn (ddof 0, no eps). A divisor of 0 is replaced by 1.
std::shared_ptr<const FinishStep> statistics_step(const StatisticsOptions& options);

}  // namespace melflow
