// The samples of each batch of an epoch, for batches of rows by number (Python: open().batches).
// A Loader's order is another: recordings by `BatchRun`, samples by
// stages/output/training/sample_batcher.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "stages/output/training/batch_cut.h"
#include "stages/permutation.h"

namespace melflow {

/// A function of its settings. Samples have numbers; they come by a permutation, of which nothing
/// is kept, or with buckets or `max_rows` by a list.
class EpochOrder {
 public:
  /// Where it pays to take samples of one recording together. Recordings come in random order, and
  /// a sample leaves between its recording's turn and `window` rows later, by chance.
  struct Recordings {
    std::vector<std::int64_t> samples,
        rows;  ///< of each, in the order of the samples; none: one permutation
    /// [rows], at most as many as came before the recording; 0: one recording after the other
    std::int64_t window = 0;
  };
  struct Settings {
    std::uint64_t samples = 0;
    std::vector<std::int64_t> lengths;  ///< of each [rows]; empty where none counts
    bool shuffles = true;
    std::size_t bucket = 0;  ///< of so many recordings those of similar length come together
    std::uint64_t seed = 0, epoch = 0;
    BatchLimits limits;
    bool drop_last = false;   ///< else the last batch repeats samples where ranks need more
    std::uint64_t begin = 0;  ///< so many were delivered, to all ranks together
    Recordings together;
  };
  explicit EpochOrder(Settings settings);

  /// Of batches from `begin` on, for each rank.
  [[nodiscard]] std::uint64_t count() const { return count_; }

  struct Batch {
    std::vector<std::int64_t> samples;
    /// So many samples of the epoch have been delivered with it, to all ranks together.
    std::uint64_t end = 0;
    /// Rows that a sample in the place of another may have.
    std::int64_t longest = std::numeric_limits<std::int64_t>::max();
  };
  /// What a rank has of the batch with that number, from `begin` on.
  [[nodiscard]] Batch batch(std::uint64_t number, std::size_t rank) const;

  /// A sample for the place of another, the same one each time: another one for each attempt, and
  /// where samples of one recording come together, those of one other recording.
  [[nodiscard]] std::int64_t other(std::int64_t sample, std::uint64_t attempt) const;

 private:
  [[nodiscard]] std::int64_t at(std::uint64_t place) const {
    if (!together_.empty()) return together_[static_cast<std::size_t>(place)];
    return static_cast<std::int64_t>(settings_.shuffles ? order_(place) : place);
  }
  void list_together();
  void list_batches();
  void fill_up(std::vector<std::int64_t>& batch) const;

  const Settings settings_;
  const Permutation order_, others_;
  std::vector<std::int64_t> together_;        // all samples in their order; none: by order_
  std::vector<std::int64_t> recording_ends_;  // of the samples of each, where they are together
  std::uint64_t count_ = 0;
  std::vector<std::int64_t> listed_;  // the samples of all batches from `begin` on
  std::vector<std::size_t> ends_;     // of each batch, in listed_
};

}  // namespace melflow
