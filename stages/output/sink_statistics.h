// Computes the mean and standard deviation of an output's columns while rows come, and scales the
// finished rows by them. With statistics: none, no call does anything.
//
// Threads: as the parts of the class say; settle() uses the run's threads itself. Locks: that of
// the sums is held for a moment and takes no other, so that the writer may call with its own held.
// Errors: RunError, from the constructor, kept_memory() and settle() alone.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "pipeline/stage/stage.h"
#include "stages/items.h"
#include "stages/output/output_sections.h"
#include "stages/output/row_sink_options.h"
#include "stages/output/rows/row_order.h"
#include "stages/output/rows/row_statistics.h"
#include "stages/output/section_file.h"
#include "stages/recording_groups.h"

namespace melflow {

class SinkStatistics {
 public:
  /// `target` and `info` must outlive this object. Throws RunError where the corpus has splits and
  /// none of them is the requested one.
  SinkStatistics(const RowSinkOptions& target, const FeatureInfo& info, const RunContext& run);
  /// The most memory [bytes] that the statistics of groups take. Throws RunError where there are
  /// too many groups, or the list lacks the column that names them.
  static std::size_t kept_memory(const RowSinkOptions& target, const FeatureInfo& info,
                                 const RunContext& run);

  // ---- while rows come; from any thread

  /// Adds those of a batch's rows that are finished.
  void note(const MelBatch& batch, const ItemContext& context);
  /// Adds rows [row, row + rows) of a file; all values are finite.
  void sum(std::size_t file, std::int64_t row, std::int64_t rows, const float* values);
  /// Removes the rows of a file that leaves none.
  void drop(std::size_t file);
  /// Notes which files of `ready` are complete: all of their rows were added.
  void close(const std::vector<PlacedPart>& ready);

  // ---- by one thread

  /// Notes that the sums are wrong for this file: it has rows that were not added, or rows that
  /// were added are gone.
  void mark_stale(std::size_t file) { is_stale_ = is_stale_ || counts(file); }
  using Files = std::vector<SectionFile>;  ///< by section
  /// Computes the statistics, when all rows are in the files; reads the rows again if mark_stale()
  /// was called, and for the statistics of groups. `is_complete`: whether these are computed, and
  /// rows will be scaled, if the options say so. Throws RunError for rows that are not finite.
  void settle(const RunContext& run, const RowOrder& order, const OutputSections& sections,
              const Files& files, bool is_complete);
  /// Adds the sums of rows that were not added one by one, of files that count.
  void add(const ColumnSums& sums) {
    if (sums_) sums_->add(sums);
  }
  /// The sums over all rows, after settle(); nothing with statistics: none.
  [[nodiscard]] std::optional<ColumnSums> sums() const {
    return sums_ ? std::optional(sums_->sums()) : std::nullopt;
  }
  /// The statistics, after settle(); null with statistics: none.
  [[nodiscard]] const ColumnStatistics* settled() const { return settled_ ? &*settled_ : nullptr; }
  /// Uses these statistics, which include other rows; to be called before the first row.
  void use(ColumnStatistics statistics) {
    sums_.reset();
    settled_ = std::move(statistics);
  }
  /// Scales rows [from, from + rows), those of a recording of the run, by the statistics. From any
  /// thread.
  void normalize(std::size_t recording, RowPartFile& file, std::int64_t from,
                 std::int64_t rows) const;

 private:
  struct FileRange {
    std::size_t first = 0, last = 0;  // [first, last)
  };
  [[nodiscard]] bool counts(std::size_t file) const {
    return sums_ && std::any_of(counted_.begin(), counted_.end(), [file](const FileRange& r) {
             return file >= r.first && file < r.last;
           });
  }
  void sum(std::size_t file, std::int64_t row, std::int64_t rows, const void* values,
           NumberType type, bool is_last);
  void sum_again(const RunContext& run, const RowOrder& order, const OutputSections& sections,
                 const Files& files);
  [[nodiscard]] GroupStatistics of_groups(const RunContext& run, const RowOrder& order,
                                          const OutputSections& sections, const Files& files) const;
  void read_again(const RunContext& run, const RowOrder& order, std::size_t recording,
                  RowPartFile& file, std::int64_t first, RowStatistics& to) const;

  const RowSinkOptions& target_;
  const FeatureInfo& info_;
  std::unique_ptr<RowStatistics> sums_;
  std::vector<FileRange> counted_;         // the files that are in the sums
  std::optional<RecordingGroups> groups_;  // with statistics_by
  std::string of_ = "all";
  bool is_stale_ = false;
  mutable std::mutex reading_;
  std::optional<ColumnStatistics> settled_;
};

}  // namespace melflow
