// The samples of each batch of an epoch, for batches of rows addressed by number (Python:
// open().batches). Whole recordings have the order that Manifest::shuffle gives them for a Loader,
// and its buckets; of windows a Loader does not know the number, so stages/training/sample_batcher
// draws them from a buffer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "stages/permutation.h"
#include "stages/training/batch_cut.h"

namespace melflow {

/// The order is a function of the settings. Samples have numbers and are ordered by a permutation,
/// which needs no memory for windows.
class EpochOrder {
 public:
  /// Used where it pays to take samples of one recording together. Recordings come in random order;
  /// each sample comes at most `window` rows after its recording's turn, at random.
  struct Recordings {
    std::vector<std::int64_t> samples,
        rows;  ///< of each recording, in the order of the samples; none: one permutation
    /// [rows], at most the rows before the recording's turn; 0: one recording after the other
    std::int64_t window = 0;
  };
  struct Settings {
    std::uint64_t samples = 0;
    std::vector<std::int64_t> lengths;  ///< of each sample [rows]; empty: they do not matter
    /// Where samples are recordings, of each its place in a list of `listed` recordings. They come
    /// in the order in which a Loader shuffles that list.
    std::vector<std::int64_t> places;
    std::uint64_t listed = 0;
    bool shuffles = true;
    std::size_t bucket = 0;  ///< samples of similar length are batched among this many
    std::uint64_t seed = 0, epoch = 0;
    BatchLimits limits;
    bool drop_last = false;   ///< else the last batch repeats samples where ranks need more
    std::uint64_t begin = 0;  ///< samples delivered so far, to all ranks together
    Recordings together;
  };
  explicit EpochOrder(Settings settings);

  [[nodiscard]] std::uint64_t samples() const { return settings_.samples; }
  /// The number of batches from `begin` on, for each rank.
  [[nodiscard]] std::uint64_t count() const { return count_; }

  struct Batch {
    std::vector<std::int64_t> samples;
    /// Samples of the epoch delivered up to the end of this batch, to all ranks together.
    std::uint64_t end = 0;
    /// The largest number of rows of a replacement sample.
    std::int64_t longest = std::numeric_limits<std::int64_t>::max();
  };
  /// Returns the samples of one rank in batch `number`, counted from `begin`.
  [[nodiscard]] Batch batch(std::uint64_t number, std::size_t rank) const;

  /// Returns a replacement for a sample, always the same: another for each attempt. Where samples
  /// of one recording come together, their replacements come from one other recording.
  [[nodiscard]] std::int64_t other(std::int64_t sample, std::uint64_t attempt) const;

 private:
  [[nodiscard]] std::int64_t at(std::uint64_t place) const {
    if (!in_order_.empty()) return in_order_[static_cast<std::size_t>(place)];
    return static_cast<std::int64_t>(settings_.shuffles ? order_(place) : place);
  }
  void list_together();
  void list_recordings();
  void list_batches();
  void fill_up(std::vector<std::int64_t>& batch) const;

  const Settings settings_;
  const Permutation order_, others_;
  std::vector<std::int64_t> in_order_;        // all samples; none: ordered by order_
  std::vector<std::int64_t> recording_ends_;  // of samples by recording; none: not together
  std::uint64_t count_ = 0;
  std::vector<std::int64_t> listed_;  // the samples of all batches from `begin` on
  std::vector<std::size_t> ends_;     // of each batch, as positions in listed_
};

}  // namespace melflow
