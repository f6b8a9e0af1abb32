// Prefetched batches of rows that are addressed by number.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "apps/python/epoch_order.h"
#include "apps/python/process.h"
#include "apps/python/row_reader.h"
#include "pipeline/base/memory.h"
#include "stages/features/mel/utterance_steps.h"

namespace melflow {

class RowBatches final : public EndsWithPython {
 public:
  struct Settings {
    /// Sample i is the rows [starts[i], starts[i] + counts[i]); with `is_ragged` = false, each of
    /// these rows is a sample.
    std::vector<std::int64_t> starts, counts;
    bool is_ragged = false;
    std::size_t rank = 0;
    std::size_t prefetch = 4, threads = 1;
    std::size_t ahead = 0;  ///< the rows of this many further batches are prefetched
    bool as_float32 = false;
    /// [groups, columns]; rows are scaled, as float32, by the values of their range's group.
    std::vector<double> mean, std;
    std::vector<std::int64_t> groups;  ///< of each range; empty: there is one group
  };
  struct Batch {
    Buffer data;  ///< [samples, rows..., columns], padded with 0
    NumberType type = NumberType::float32;
    std::vector<std::size_t> shape;
    std::vector<std::int64_t> samples;  ///< sample numbers
    std::vector<std::int64_t> lengths;  ///< [rows]; only of ragged samples
    std::uint64_t end = 0;              ///< as in EpochOrder::Batch
  };

  RowBatches(std::shared_ptr<const RowReader> reader, std::shared_ptr<const EpochOrder> order,
             Settings settings);
  ~RowBatches();

  /// Waits for the next batch, at most `seconds`. Sets `over` when there is none. Throws RunError.
  [[nodiscard]] std::optional<Batch> take(double seconds, bool& over);
  void stop() override;

 private:
  [[nodiscard]] std::size_t range_with(std::int64_t sample) const;
  [[nodiscard]] std::uint64_t first_row(std::int64_t sample) const;
  [[nodiscard]] std::int64_t rows_of(std::int64_t sample) const {
    return settings_.is_ragged ? settings_.counts[static_cast<std::size_t>(sample)] : 1;
  }
  void replace_lost(EpochOrder::Batch& batch, RowReader::Scratch& scratch, bool is_urgent) const;
  [[nodiscard]] Batch make(EpochOrder::Batch batch, RowReader::Scratch& scratch, bool is_urgent);
  [[nodiscard]] RowReader::Range range_of(std::int64_t sample) const {
    return {first_row(sample), static_cast<std::uint64_t>(rows_of(sample))};
  }
  void work();
  void look_ahead();

  const std::shared_ptr<const RowReader> reader_;
  const std::shared_ptr<const EpochOrder> order_;
  const Settings settings_;
  std::vector<std::int64_t> ends_;  // number of samples up to the end of each range of rows
  const std::uint64_t samples_;
  std::vector<std::shared_ptr<const FinishStep>> scales_;  // by group

  std::mutex stopping_;
  std::mutex mutex_;  // guards the members below
  Condition changed_{new std::condition_variable};
  std::uint64_t begun_ = 0, taken_ = 0, looked_at_ = 0;
  std::map<std::uint64_t, Batch> made_;
  std::exception_ptr error_;
  bool is_over_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace melflow
