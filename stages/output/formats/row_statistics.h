// Mean and standard deviation of every column over all rows of an output, the same to the last bit
// however the rows come: in which blocks and order, from how many threads, and in how many parts a
// corpus was cut.
//
// Rows are summed in double precision in runs of a fixed length, counted from a file's first row;
// what the runs give is added up without rounding (ExactSum), which no order or grouping changes.
// Inside a run values are taken relative to its first row, so that a small deviation from a large
// mean is not lost.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "stages/output/formats/exact_sum.h"

namespace melflow {

/// What an output stores.
struct ColumnStatistics {
  std::string of;           ///< the split, or "all"
  bool is_applied = false;  ///< the rows are normalised by it
  std::int64_t frames = 0;
  std::vector<double> mean, std;  ///< [columns]; std divides by the number of frames
};

/// Of one run after another: its first frame, and of all its frames the sums of their differences
/// from that one and of the squares of these.
class RunSums {
 public:
  static constexpr std::int64_t kMostFrames = 128;  ///< of a run

  explicit RunSums(int columns) : columns_(static_cast<std::size_t>(columns)) {}
  /// `values` [frames, columns], all finite: runs of kMostFrames, the last one perhaps shorter.
  void add(const float* values, std::int64_t frames);
  void add(const RunSums& other);
  void clear();

  [[nodiscard]] std::size_t count() const { return frames_.size(); }
  [[nodiscard]] std::int64_t frames(std::size_t run) const { return frames_[run]; }
  [[nodiscard]] const double* first(std::size_t run) const { return &sums_[run * 3 * columns_]; }
  [[nodiscard]] const double* differences(std::size_t run) const { return first(run) + columns_; }
  [[nodiscard]] const double* squares(std::size_t run) const { return first(run) + 2 * columns_; }

 private:
  std::size_t columns_;
  std::vector<std::int64_t> frames_;  // [runs]
  std::vector<double> sums_;          // [runs, 3, columns]
};

/// Of all rows of some files. Parts of a corpus add up to the same as the whole of it.
class ColumnSums {
 public:
  explicit ColumnSums(int columns)
      : sums_(static_cast<std::size_t>(columns)), squares_(static_cast<std::size_t>(columns)) {}
  void add(const RunSums& runs);
  void add(const ColumnSums& other);
  [[nodiscard]] ColumnStatistics statistics() const;

 private:
  std::int64_t frames_ = 0;
  std::vector<ExactSum> sums_, squares_;  // [columns]
};

/// From any thread.
class RowStatistics {
 public:
  /// Of rows [frames, columns] each.
  RowStatistics(int frames, int columns);

  /// `values` [rows, frames, columns], all finite: rows of a file from `first_row` on, in any order
  /// of pieces and files. `is_last`: they are the file's last ones.
  void take(std::size_t file, std::int64_t first_row, std::int64_t rows, const float* values,
            bool is_last);
  /// All rows of the file were taken; files in any order.
  void close(std::size_t file);
  /// It leaves no rows.
  void drop(std::size_t file);

  [[nodiscard]] ColumnSums sums() const;

 private:
  // A run whose rows come in several pieces.
  struct Partial {
    std::vector<float> values;  // [run_rows_, frames, columns]
    std::int64_t rows = 0;      // that are there
  };
  struct File {
    explicit File(int columns) : runs(columns) {}
    RunSums runs;
    std::optional<ColumnSums> folded;  // of earlier runs, where they are many
    std::map<std::int64_t, Partial> partial;
  };
  void sum_rows(const float* values, std::int64_t rows, RunSums& to) const;
  void put(File& file, std::int64_t first_row, std::int64_t rows, const float* values) const;

  std::int64_t frames_;  // of a row
  int columns_;
  std::int64_t run_rows_;  // between two places where a run begins
  mutable std::mutex mutex_;
  std::map<std::size_t, File> open_;
  ColumnSums all_;
};

}  // namespace melflow
