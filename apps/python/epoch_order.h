// The samples of each batch of an epoch, for batches of rows addressed by number (Python:
// open().batches). Whole recordings have the order that Manifest::shuffle gives them for a Loader,
// and its buckets; of windows a Loader does not know the number, so stages/training/sample_batcher
// draws them from a buffer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
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
    /// With lengths, limits.ranks is the number of batches in a group, which are alike.
    BatchLimits limits;
    std::size_t ranks = 0;  ///< programs, which divide limits.ranks; 0: as many
    /// Whether the groups are the same wherever `begin` is, as they are with buckets and packed.
    bool keeps_groups = false;
    bool packs = false;       ///< batches have no padding; with lengths and limits.max_rows
    bool drop_last = false;   ///< else the last batch repeats samples where ranks need more
    std::uint64_t begin = 0;  ///< samples delivered so far, to all ranks together
    Recordings together;
    /// The samples in order (see mixing.h), in place of what `places` and `together` say about it.
    std::vector<std::int64_t> order;
    /// Samples that replace one another, by number and rising, with a name for messages.
    struct Source {
      std::string name;
      std::vector<std::int64_t> samples;
    };
    std::vector<Source> sources;
  };
  explicit EpochOrder(Settings settings);

  /// The number of samples in an epoch; with `order`, some may come several times.
  [[nodiscard]] std::uint64_t samples() const { return samples_; }
  /// The number of batches from `begin` on, for each rank.
  [[nodiscard]] std::uint64_t count() const { return count_; }
  /// Returns the sample at a place of the order, before batches are cut.
  [[nodiscard]] std::int64_t at(std::uint64_t place) const {
    if (!in_order_.empty()) return in_order_[static_cast<std::size_t>(place)];
    return static_cast<std::int64_t>(settings_.shuffles ? order_(place) : place);
  }
  /// With lengths, the samples of all batches from `begin` on, of all ranks, and where each ends.
  [[nodiscard]] const std::vector<std::int64_t>& listed() const { return listed_; }
  [[nodiscard]] std::vector<std::int64_t> listed_ends() const;

  struct Batch {
    std::vector<std::int64_t> samples;
    /// Samples of the epoch delivered up to the end of this batch, to all ranks together.
    std::uint64_t end = 0;
    /// The greatest length of a replacement sample; when packed, that of the sample itself.
    std::int64_t longest = std::numeric_limits<std::int64_t>::max();
  };
  /// Returns the samples of one rank in batch `number`, counted from `begin`.
  [[nodiscard]] Batch batch(std::uint64_t number, std::size_t rank) const;

  /// Returns a replacement for a sample, always the same: another for each attempt. Where samples
  /// of one recording come together, their replacements come from one other recording.
  [[nodiscard]] std::int64_t other(std::int64_t sample, std::uint64_t attempt) const;
  /// Whether a sample may replace another in a batch.
  [[nodiscard]] bool fits(std::int64_t replacement, std::int64_t replaced,
                          const Batch& batch) const {
    if (settings_.lengths.empty()) return true;
    return length(replacement) <= (settings_.packs ? length(replaced) : batch.longest);
  }
  /// Returns the name of the source that a sample is of; "": there are no sources.
  [[nodiscard]] std::string source_of(std::int64_t sample) const;

 private:
  using Samples = std::vector<std::int64_t>;
  [[nodiscard]] std::int64_t length(std::int64_t sample) const {
    return settings_.lengths[static_cast<std::size_t>(sample)];
  }
  [[nodiscard]] const Settings::Source* find_source(std::int64_t sample) const;
  void list_together();
  void list_recordings();
  void list_batches();
  void list_packed();
  void list_group(std::vector<Samples> batches, std::uint64_t& passed);
  void list_shared(Samples group, bool is_filled_up, std::uint64_t& passed);
  void fill_up(Samples& batch, std::size_t multiple) const;
  void even_out(std::vector<Samples>& batches, std::size_t multiple) const;

  Settings settings_;  // without `order`
  const std::uint64_t samples_;
  const std::size_t ranks_;
  const Permutation order_, others_;
  std::vector<std::int64_t> in_order_;        // the samples; none: ordered by order_
  std::vector<std::int64_t> recording_ends_;  // of samples by recording; none: not together
  std::uint64_t count_ = 0;
  std::vector<std::int64_t> listed_;  // the samples of all batches from `begin` on
  struct End {
    std::size_t listed = 0;       // as a position in listed_
    std::uint64_t delivered = 0;  // samples of the epoch up to there
  };
  std::vector<End> ends_;  // of the batches, those of a step's ranks one after the other
};

}  // namespace melflow
