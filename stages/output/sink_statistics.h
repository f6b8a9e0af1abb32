// Mean and standard deviation of an output's columns: summed while rows come, settled when all are
// there, and the rows scaled by them. Where none are wanted nothing here does anything.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "pipeline/stage.h"
#include "stages/items.h"
#include "stages/output/formats/row_order.h"
#include "stages/output/formats/row_part_file.h"
#include "stages/output/formats/row_statistics.h"
#include "stages/output/output_sections.h"
#include "stages/output/row_sink_options.h"

namespace melflow {

class SinkStatistics {
 public:
  /// `target`, `info`: outlive this one.
  SinkStatistics(const RowSinkOptions& target, const FeatureInfo& info, const RunContext& run);

  // ---- while rows come; from any thread

  /// Of a batch's finished rows.
  void note(const MelBatch& batch, const ItemContext& context);
  /// Of a part of a file's rows, which are finite.
  void sum(std::size_t file, std::int64_t row, std::int64_t rows, const float* values);
  /// The file leaves no rows.
  void drop(std::size_t file);
  /// All rows of complete files were taken.
  void close(const std::vector<PlacedPart>& ready);

  // ---- by one thread

  /// The file has rows that were not summed, or has none of those that were.
  void mistake(std::size_t file) { is_stale_ = is_stale_ || counts(file); }
  using Files = std::vector<std::unique_ptr<RowPartFile>>;
  /// All rows are at their place. Throws RunError for rows that are not finite.
  void settle(const RunContext& run, const RowOrder& order, const OutputSections& sections,
              const Files& files);
  /// After that; null where none are wanted.
  [[nodiscard]] const ColumnStatistics* settled() const { return settled_ ? &*settled_ : nullptr; }
  /// Scales all `rows` of a file by them.
  void normalize(const RunContext& run, RowPartFile& file, std::int64_t rows) const;

 private:
  [[nodiscard]] bool counts(std::size_t file) const { return sums_ && file < counted_; }
  void sum(std::size_t file, std::int64_t row, std::int64_t rows, const void* values,
           NumberType type, bool is_last);
  void sum_again(const RunContext& run, const RowOrder& order, const OutputSections& sections,
                 const Files& files);

  const RowSinkOptions& target_;
  const FeatureInfo& info_;
  std::unique_ptr<RowStatistics> sums_;
  std::size_t counted_;  // files before this one are in them
  std::string of_ = "all";
  bool is_stale_ = false;
  std::optional<ColumnStatistics> settled_;
};

}  // namespace melflow
