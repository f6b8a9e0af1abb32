// Everything that an output stores beside its rows: which rows each file has, how each file ended,
// and the settings. index_columns lists what is stored for every file, hdf5_layout and npy_layout
// store it.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "pipeline/stage/sink_ledger.h"
#include "pipeline/stage/stage.h"
#include "stages/manifest.h"
#include "stages/output/formats/feature_data.h"
#include "stages/output/rows/row_order.h"
#include "stages/output/rows/row_statistics.h"

namespace melflow {

/// Throws RunError saying that `what` was written, but something else is read back.
[[noreturn]] void fail_read_back(const std::string& what);

struct OutputIndex {
  RunContext& run;
  const SinkLedger& ledger;
  const RowOrder& order;
  const FeatureInfo& info;
  const Value& feature_settings;  ///< the settings that decide the rows (Stage::feature_settings)
  bool complete;
  std::size_t first = 0, last = 0;  ///< files [first, last) of the run; members count from `first`
  const ColumnStatistics* statistics = nullptr;
  const std::vector<std::uint64_t>* rows_hashes = nullptr;  ///< of all files of the run
  bool is_of_several = false;                               ///< the run has a file for each split
  /// The warnings of the output that the run repairs; null where it repairs none.
  const std::vector<std::string>* kept_warnings = nullptr;
  MeasureSet measures = {};                             ///< that files have (property::kMeasures)
  const ManifestSource* listed = manifest_source(run);  ///< null where the source lists no files
  const Manifest& manifest = listed != nullptr ? listed->manifest() : no_manifest();
  const std::vector<std::int64_t> first_rows = order.offsets();  ///< for all files of the run
  using FilesByStatus = std::array<std::int64_t, std::size(FeatureData::kStatusNames)>;
  const FilesByStatus files_by_status = count_files();

  [[nodiscard]] std::size_t files() const { return last - first; }
  [[nodiscard]] std::string path(std::size_t file) const { return run.source.name(first + file); }
  [[nodiscard]] std::int64_t offset(std::size_t file) const { return first_rows[first + file]; }
  [[nodiscard]] std::int64_t rows(std::size_t file) const { return order.rows(first + file); }
  [[nodiscard]] std::int32_t sample_rate(std::size_t file) const {
    return order.audio(first + file).sample_rate;
  }
  /// NaN where it is not known.
  [[nodiscard]] float measured(std::size_t file, Measure which) const;
  [[nodiscard]] const std::string& results(std::size_t file) const {
    return order.results(first + file);
  }
  [[nodiscard]] FileStamp stamp(std::size_t file) const;
  [[nodiscard]] const Manifest::Span& span(std::size_t file) const {
    return manifest.span(first + file);
  }
  [[nodiscard]] bool has_contents() const {
    return listed != nullptr && listed->contents() != nullptr;
  }
  [[nodiscard]] std::uint64_t content(std::size_t file) const {
    return listed->contents()->of[first + file];
  }
  /// XXH3 of the file's rows; 0 where it is not known, or there are none.
  [[nodiscard]] std::uint64_t rows_hash(std::size_t file) const {
    return rows_hashes != nullptr && rows(file) > 0 ? (*rows_hashes)[first + file] : 0;
  }
  [[nodiscard]] Ledger::Entry entry(std::size_t file) const { return ledger.entry(first + file); }
  /// The number of the file's label; -1 for none, or where files may have several and this one has
  /// more or fewer than one.
  [[nodiscard]] std::int32_t label(std::size_t file) const {
    return listed != nullptr ? manifest.label(first + file) : -1;
  }
  [[nodiscard]] std::span<const std::int32_t> labels(std::size_t file) const {
    return manifest.labels(first + file);
  }
  [[nodiscard]] std::int8_t split(std::size_t file) const {
    return static_cast<std::int8_t>(listed != nullptr ? manifest.split(first + file) : -1);
  }
  /// A target of the file; NaN for none.
  [[nodiscard]] float target(std::size_t file, std::size_t target) const {
    return manifest.target(first + file, target);
  }
  /// A text of the file; "" for none.
  [[nodiscard]] std::string text(std::size_t file, std::size_t which) const {
    return std::string(manifest.text(first + file, which));
  }
  [[nodiscard]] double duration(std::size_t file) const;  ///< [s]
  [[nodiscard]] FeatureData::Status status(std::size_t file) const;
  /// The files that were skipped, failed, or are ok with a warning, in order.
  [[nodiscard]] std::vector<std::size_t> remarked() const;
  struct Rows {
    std::int64_t first = 0, count = 0;
  };
  /// The files and rows of a split.
  struct SplitRows {
    std::string name;
    std::size_t first = 0, last = 0;  ///< files [first, last)
    std::vector<Rows> rows;           ///< in the order of the files; adjacent ranges are one
    std::int64_t row_count = 0;
  };
  [[nodiscard]] std::vector<SplitRows> splits() const;
  /// Warnings about the run as a whole.
  [[nodiscard]] std::vector<std::string> warnings() const {
    return kept_warnings != nullptr ? *kept_warnings : run.warnings();
  }
  /// index_hash() and run_hash() of this (index_hash.h), computed once.
  [[nodiscard]] const std::string& hash() const;
  [[nodiscard]] const std::string& run_hash() const;
  /// The names of the axes of the rows: "row", "frame" where a row has several frames, and
  /// FeatureInfo::axis.
  [[nodiscard]] std::vector<std::string> axes() const;

  mutable std::string hash_ = {}, run_hash_ = {};  ///< "" until they are asked for

 private:
  static const Manifest& no_manifest();
  [[nodiscard]] FilesByStatus count_files() const;
};

}  // namespace melflow
