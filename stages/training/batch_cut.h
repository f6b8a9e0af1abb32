// Groups samples into batches by length, and makes the random draws for that.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <utility>
#include <vector>

namespace melflow {

/// Random draws that are the same on every machine.
class Draws {
 public:
  explicit Draws(std::uint64_t seed) : random_(seed) {}
  /// Returns a number below `n`.
  [[nodiscard]] std::size_t below(std::size_t n);
  template <class T>
  void shuffle(std::vector<T>& values) {
    for (std::size_t n = values.size(); n > 1; --n) std::swap(values[n - 1], values[below(n)]);
  }

 private:
  std::mt19937_64 random_;
};

/// The limits of a batch, or of each share where it is shared out evenly to `ranks` programs.
struct BatchLimits {
  std::size_t size = 32;     ///< samples
  std::size_t max_rows = 0;  ///< with the padding; a single sample may have more; 0: any number
  std::size_t ranks = 1;
  double max_padding = 1;  ///< the greatest part of a sample's rows that is padding

  /// Whether a batch of `count` samples takes one more, the longest and the shortest then having so
  /// many rows.
  [[nodiscard]] bool take(std::size_t count, std::int64_t longest, std::int64_t shortest) const {
    if (count < ranks) return true;
    const std::size_t each = count / ranks + 1;  // the largest share
    return each <= size && pads(longest, shortest) &&
           (max_rows == 0 || each * static_cast<std::size_t>(longest) <= max_rows);
  }
  /// Whether a sample of `length` rows may be padded to `longest`.
  [[nodiscard]] bool pads(std::int64_t longest, std::int64_t length) const {
    return static_cast<double>(longest - length) <= max_padding * static_cast<double>(longest);
  }
  [[nodiscard]] bool fill(std::size_t count) const { return count == size * ranks; }
};

/// Batches as positions in a list of samples.
struct BatchCut {
  std::vector<std::vector<std::size_t>> full;  ///< batches that take no more
  std::vector<std::size_t> rest;               ///< too few for a batch
};

/// Cuts batches in the order of the list; `lengths`: of its samples [rows].
BatchCut cut_in_order(const std::vector<std::int64_t>& lengths, const BatchLimits& limits);

/// Cuts batches of similar length. With draws, neighbours in the order of lengths are grouped at
/// random, so that equal lists give different batches, and the rest may have any length.
BatchCut cut_by_length(const std::vector<std::int64_t>& lengths, const BatchLimits& limits,
                       Draws* draws);

/// Packs samples without padding into batches of at most limits.size samples and limits.max_rows
/// rows, by best fit of the longest first; a longer sample is alone. The fullest are first.
std::vector<std::vector<std::size_t>> pack(const std::vector<std::int64_t>& lengths,
                                           const BatchLimits& limits);

/// Gathers samples of which batches are cut: of similar length, or in their order.
template <class Sample>
class Bucket {
 public:
  explicit Bucket(bool by_length = true) : by_length_(by_length) {}

  void add(Sample sample, std::int64_t length) {
    held_.push_back(std::move(sample));
    lengths_.push_back(length);
    ++arrived_;
  }
  [[nodiscard]] const std::vector<Sample>& held() const { return held_; }
  /// Samples that came since batches were cut last.
  [[nodiscard]] std::size_t arrived() const { return arrived_; }
  /// Takes batches, with draws in random order. What does not fill one stays, unless
  /// `is_batch(rest)`, which may add to it.
  template <class IsBatch>
  std::vector<std::vector<Sample>> cut(const BatchLimits& limits, Draws* draws,
                                       const IsBatch& is_batch) {
    const BatchCut cut =
        by_length_ ? cut_by_length(lengths_, limits, draws) : cut_in_order(lengths_, limits);
    std::vector<Sample> held = std::exchange(held_, {});
    const std::vector<std::int64_t> lengths = std::exchange(lengths_, {});
    const auto taken = [&](const std::vector<std::size_t>& places) {
      std::vector<Sample> out;
      for (const std::size_t place : places) out.push_back(std::move(held[place]));
      return out;
    };
    std::vector<std::vector<Sample>> out;
    for (const std::vector<std::size_t>& places : cut.full) out.push_back(taken(places));
    if (std::vector<Sample> rest = taken(cut.rest); !rest.empty() && is_batch(rest)) {
      out.push_back(std::move(rest));
    } else {
      held_ = std::move(rest);
      for (const std::size_t place : cut.rest) lengths_.push_back(lengths[place]);
    }
    if (draws != nullptr) draws->shuffle(out);
    arrived_ = 0;
    return out;
  }

 private:
  bool by_length_;
  std::vector<Sample> held_;
  std::vector<std::int64_t> lengths_;  // [rows]
  std::size_t arrived_ = 0;
};

}  // namespace melflow
