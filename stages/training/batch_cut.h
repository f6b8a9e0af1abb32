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

  /// Whether a batch of `count` samples takes one more, the longest then having `longest` rows.
  [[nodiscard]] bool take(std::size_t count, std::int64_t longest) const {
    if (count < ranks) return true;
    const std::size_t each = count / ranks + 1;  // the largest share
    return each <= size && (max_rows == 0 || each * static_cast<std::size_t>(longest) <= max_rows);
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

}  // namespace melflow
