// An output of an earlier run, whose rows an update takes over.
//
// Threads: copy() from any; the others from one at a time, before the first row. Every use of HDF5
// is under hdf5_mutex(). Lifetime: the plan holds it until its rows are copied or stay. Errors:
// RunError that names the output, where it cannot be read or its rows are not what was written.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "stages/output/row_plan.h"

namespace melflow {

class EarlierRows final : public RowGiver {
 public:
  /// Opens the output at `path`; null where there is none. Throws RunError when it cannot be
  /// updated because it is incomplete, of an earlier format, or has other features; and as
  /// PartFile::recover() does, with `may_change`: false in a dry run (RunTask::plans), which leaves
  /// the files alone. `sinks`: the number in the pipeline (RunSettings::sinks).
  static std::shared_ptr<EarlierRows> find(const std::string& path, const Value& feature_settings,
                                           bool may_change, int sinks);

  [[nodiscard]] const FeatureFile& file() const override { return file_; }
  void copy(std::span<const std::size_t> entries, RowPartFile& to, std::int64_t at) const override;

  [[nodiscard]] std::int64_t rows() const { return static_cast<std::int64_t>(file_.rows()); }
  /// Whether the output has hashes of the files' contents.
  [[nodiscard]] bool has_contents() const;
  /// The byte of the file at which the rows begin, where they are in one piece; -1 otherwise.
  [[nodiscard]] std::int64_t rows_at() const;
  /// The backend and instruction set that computed the rows: "cpu avx2".
  [[nodiscard]] std::string computed_by() const;
  /// Says how many labels have other numbers now, with an example; "" where none has.
  [[nodiscard]] std::string renumbered_labels(const std::vector<std::string>& now) const;

 private:
  EarlierRows(const std::string& path, int sinks) : file_(path), sinks_(sinks) { note_remarks(); }
  void check_rows(std::size_t entry, std::uint64_t hash) const;

  FeatureFile file_;
  int sinks_;
};

/// Says how to compute the damaged rows of an output again. `sinks`: the number in its pipeline.
std::string cure_of_damaged_rows(const std::string& path, int sinks);

}  // namespace melflow
