// Prefetched batches of rows that are addressed by number.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "apps/python/epoch_order.h"
#include "apps/python/process.h"
#include "apps/python/row_reader.h"
#include "stages/features/mel/utterance_steps.h"
#include "stages/training/batch_queue.h"
#include "stages/training/sample_batch.h"

namespace melflow {

class RowBatches final : public EndsWithPython {
 public:
  /// The rows that samples have in one reader.
  struct Input {
    std::shared_ptr<const RowReader> reader;
    std::string name, length;  ///< of the rows and their lengths, in a batch
    /// Of whole recordings, sample i is the rows [starts[i], starts[i] + counts[i]); else each of
    /// these rows is a sample.
    std::vector<std::int64_t> starts, counts;
    bool as_float32 = false;
    /// [groups, columns]; rows are scaled, as float32, by the values of their range's group.
    std::vector<double> mean, std;
    std::vector<std::int64_t> groups;  ///< of each range; empty: there is one group
  };
  struct Settings {
    std::vector<Input> inputs;  ///< with the same samples
    bool is_ragged = false;     ///< samples are whole recordings
    /// These follow one another in one row of the batch, [1, all rows, columns], without padding.
    bool packs = false;
    std::size_t rank = 0;
    std::size_t prefetch = 4, threads = 1;
    std::size_t ahead = 0;  ///< the rows of this many further batches are prefetched
  };
  struct Batch {
    std::vector<SampleBatch::Rows> inputs;
    std::vector<std::int64_t> samples;  ///< sample numbers
    std::uint64_t end = 0;              ///< as in EpochOrder::Batch
  };

  RowBatches(std::shared_ptr<const EpochOrder> order, Settings settings);
  ~RowBatches();

  [[nodiscard]] const Input& input(std::size_t k) const { return inputs_[k]; }

  /// Waits for the next batch, at most `seconds`. Throws RunError.
  [[nodiscard]] TakeResult take(Batch& out, double seconds);
  void stop() override;

 private:
  // An input with what follows from it.
  struct Rows : Input {
    Rows(Input input, bool samples_are_recordings, bool packs_samples);
    [[nodiscard]] std::size_t range_with(std::int64_t sample) const;
    [[nodiscard]] RowReader::Range of(std::int64_t sample) const;
    [[nodiscard]] std::vector<RowReader::Range> of(const std::vector<std::int64_t>& samples) const;
    [[nodiscard]] SampleBatch::Rows read(const std::vector<std::int64_t>& samples,
                                         RowReader::Scratch& scratch) const;

    bool is_ragged, packs;
    std::vector<std::int64_t> ends;  // number of samples up to the end of each range of rows
    std::vector<std::shared_ptr<const FinishStep>> scales;  // by group
  };
  using Scratches = std::vector<std::unique_ptr<RowReader::Scratch>>;  // by input
  // Returns the places of samples that can no longer be read.
  [[nodiscard]] std::vector<std::size_t> fetch(const std::vector<std::int64_t>& samples,
                                               const Scratches& scratches, bool is_urgent) const;
  void replace_lost(EpochOrder::Batch& batch, const Scratches& scratches, bool is_urgent) const;
  [[nodiscard]] Batch make(EpochOrder::Batch batch, const Scratches& scratches, bool is_urgent);
  void work();
  void look_ahead();

  const std::shared_ptr<const EpochOrder> order_;
  Settings settings_;  // without the inputs
  std::vector<Rows> inputs_;
  std::unique_ptr<BatchQueue<Batch>> queue_;

  std::mutex stopping_;
  std::vector<std::thread> threads_;
};

}  // namespace melflow
