// Computes the mean and standard deviation of every column over all rows of an output. Every bit of
// the result is independent of the blocks and order in which rows come, of the number of threads,
// and of the number of parts that a corpus is cut into.
//
// Rows are summed in double precision in runs of a fixed length, counted from a file's first row;
// the sums of the runs are added without rounding (ExactSum), so that order and grouping do not
// matter. Inside a run, values are taken relative to its first row, so that a small deviation from
// a large mean is not lost.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "stages/output/rows/exact_sum.h"

namespace melflow {

class FinishStep;

/// The statistics of the rows of each speaker, or of another text that recordings share.
struct GroupStatistics {
  std::string by;                    ///< the column with these texts; or "label" or "split"
  std::vector<std::string> names;    ///< [groups] texts with rows, in the order of their bytes
  std::vector<std::int64_t> frames;  ///< [groups]
  std::vector<double> mean, std;     ///< [groups, columns]; std divides by the number of frames

  /// The number of the group with this name; -1 for none.
  [[nodiscard]] std::int64_t find(std::string_view name) const;
};

/// The statistics that an output stores.
struct ColumnStatistics {
  std::string of;           ///< name of the split that they are computed from, or "all"
  bool is_applied = false;  ///< whether the rows are normalised by them
  std::int64_t frames = 0;
  std::vector<double> mean, std;  ///< [columns]; std divides by the number of frames
  std::optional<GroupStatistics> groups = std::nullopt;  ///< where they were requested
};

/// Scales rows by the statistics of a group, or with -1 by those of all: (x - mean) / std. A column
/// that never changed is only shifted by its mean.
std::shared_ptr<const FinishStep> scaling_step(const ColumnStatistics& statistics,
                                               std::int64_t group = -1);

/// For each run: its first frame, the sum of all frames' differences from it, and the sum of the
/// squares of these differences.
class RunSums {
 public:
  static constexpr std::int64_t kMostFrames = 128;  ///< in a run

  explicit RunSums(int columns) : columns_(static_cast<std::size_t>(columns)) {}
  /// Adds `values` [frames, columns], all finite, as runs of kMostFrames frames; the last run may
  /// be shorter.
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

/// The sums over all rows of some files. The sums of the parts of a corpus add up to exactly those
/// of the whole.
class ColumnSums {
 public:
  explicit ColumnSums(int columns)
      : sums_(static_cast<std::size_t>(columns)), squares_(static_cast<std::size_t>(columns)) {}
  void add(const RunSums& runs);
  void add(const ColumnSums& other);
  [[nodiscard]] ColumnStatistics statistics() const;

  /// The sums, exactly, as texts to be stored.
  struct Text {
    std::int64_t frames = 0;
    std::vector<std::string> sums, squares;  ///< [columns], ExactSum::text()
  };
  [[nodiscard]] Text text() const;
  /// The sums from which text() was made; nothing for other texts, or another number of columns.
  static std::optional<ColumnSums> of(const Text& text, int columns);

 private:
  std::int64_t frames_ = 0;
  std::vector<ExactSum> sums_, squares_;  // [columns]
};

/// Collects the rows of files. All calls may come from any thread.
class RowStatistics {
 public:
  /// Each row is [frames, columns].
  RowStatistics(int frames, int columns);

  /// Adds `values` [rows, frames, columns], all finite: a file's rows from `first_row` on. Pieces
  /// and files may come in any order. `is_last`: they are the file's last rows.
  void take(std::size_t file, std::int64_t first_row, std::int64_t rows, const float* values,
            bool is_last);
  /// Notes that all rows of the file were taken; files may be closed in any order.
  void close(std::size_t file);
  /// Removes a file that leaves no rows.
  void drop(std::size_t file);

  /// Adds the sums of other files.
  void add(const ColumnSums& others);

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
    std::optional<ColumnSums> folded;  // the sums of earlier runs, once they are many
    std::map<std::int64_t, Partial> partial;
  };
  void sum_rows(const float* values, std::int64_t rows, RunSums& to) const;
  void put(File& file, std::int64_t first_row, std::int64_t rows, const float* values) const;

  std::int64_t frames_;  // of a row
  int columns_;
  std::int64_t run_rows_;  // rows between two positions at which a run begins
  mutable std::mutex mutex_;
  std::map<std::size_t, File> open_;
  ColumnSums all_;
};

}  // namespace melflow
