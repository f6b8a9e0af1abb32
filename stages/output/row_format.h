// The file format of a sink of rows: RowSink derives from this interface, and each format's sink
// implements it.
//
// Threads: the run calls from one thread at a time, before the first row and after the last one;
// file_memory() and the names may be asked for earlier, when the pipeline is checked.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "stages/items.h"
#include "stages/output/formats/output_index.h"
#include "stages/output/formats/row_part_file.h"

namespace melflow {

class RowFormat {
 public:
  using Shape = std::vector<std::uint64_t>;  // [rows, columns] or [rows, frames, columns]
  RowFormat() = default;
  RowFormat(const RowFormat&) = delete;
  RowFormat& operator=(const RowFormat&) = delete;

  /// The stage's name, for messages.
  [[nodiscard]] virtual const char* stage_name() const = 0;
  /// The ending that `path` must have, since the files beside it are named after it; "": any.
  [[nodiscard]] virtual const char* ending() const { return ""; }
  /// The paths of all files that make up the output at `path`, one with rows first. The plan asks
  /// also for a path without ending(), which it refuses; then any list will do.
  [[nodiscard]] virtual std::vector<std::string> files_of(const std::string& path) const {
    return {path};
  }
  /// Makes the file that takes the rows; called before the first row. Where extensible_at() is one,
  /// `path` may also be SectionFile::added_path(), without ending() and without files beside it.
  /// Throws RunError.
  [[nodiscard]] virtual std::unique_ptr<RowPartFile> make_row_file(
      const std::string& path, const Opening& opening) const = 0;
  /// The most memory [bytes] that the files use when that many threads write to that many of them.
  [[nodiscard]] virtual std::size_t file_memory(int /*threads*/, std::size_t /*files*/) const {
    return 0;
  }
  /// The byte at which the rows of an output must begin to be extended in place; -1 where outputs
  /// of this format cannot be extended: an update copies their rows to a new file.
  [[nodiscard]] virtual std::int64_t extensible_at() const { return -1; }
  /// Adds everything but the rows to a file from make_row_file(); called after the last row, also
  /// that of a run that was stopped (not `index.complete`), which a later one goes on with: rows
  /// must stay where they are then. Throws RunError, also where it reads back something else than
  /// it wrote.
  virtual void complete_file(RowPartFile& file, const Shape& shape, const OutputIndex& index) = 0;
  /// The name of the file's layout, for the report; "" where the format has only one.
  [[nodiscard]] virtual std::string layout_name() const { return ""; }
  /// Everything else that decides how the rows are stored.
  [[nodiscard]] virtual std::string layout_facts() const { return layout_name(); }

 protected:
  ~RowFormat() = default;
};

/// The shape of that many rows.
inline RowFormat::Shape shape_of(const FeatureInfo& info, std::int64_t rows) {
  RowFormat::Shape shape{static_cast<std::uint64_t>(rows)};
  if (info.frames > 1) shape.push_back(static_cast<std::uint64_t>(info.frames));
  if (!info.is_samples()) shape.push_back(static_cast<std::uint64_t>(info.columns));
  return shape;
}

}  // namespace melflow
