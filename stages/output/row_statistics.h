// Mean and standard deviation of every column over all rows of an output, the same for the same
// rows however they come: rows of a piece are summed in their order, pieces of a file merged in
// theirs, and files in the order of the output.
//
// Method: Chan, Golub, LeVeque (1979), "Updating formulae and a pairwise algorithm for computing
// sample variances".
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace melflow {

/// Of some rows.
struct ColumnMoments {
  std::int64_t count = 0;    ///< frames
  std::vector<double> mean;  ///< [columns]
  std::vector<double> m2;    ///< [columns] sum of squared differences from the mean

  /// `values` [frames, columns].
  static ColumnMoments of(const float* values, std::int64_t frames, int columns);
  void merge(const ColumnMoments& other);
};

/// What an output stores.
struct ColumnStatistics {
  std::string of;           ///< the split, or "all"
  bool is_applied = false;  ///< the rows are normalised by it
  std::int64_t frames = 0;
  std::vector<double> mean, std;  ///< [columns]; std divides by the number of frames
};

/// Not thread-safe.
class RowStatistics {
 public:
  explicit RowStatistics(int columns) : columns_(columns) {}

  /// Rows of a file from `first_row` on, in any order of pieces and files.
  void take(std::size_t file, std::int64_t first_row, ColumnMoments moments);
  /// The file is complete; files in the order of the output.
  void close(std::size_t file);
  /// It leaves no rows.
  void drop(std::size_t file) { open_.erase(file); }

  [[nodiscard]] ColumnStatistics result() const;

 private:
  int columns_;
  std::map<std::size_t, std::map<std::int64_t, ColumnMoments>> open_;
  ColumnMoments all_;
};

}  // namespace melflow
