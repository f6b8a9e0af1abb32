// The file of a section of an output (OutputSections) while a run writes it: the work file, which
// takes the rows, and, where the section gets more rows in place, the output itself, which takes
// them over when all are there.
//
// Threads: one opens, moves and closes it, before the first row and after the last; in between
// any may use the open file, whose class says which calls these are. Lifetime: the format has to
// outlive it. Errors: RunError, as PartFile throws it; after one, close() leaves the output as it
// was before.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "stages/output/formats/row_part_file.h"
#include "stages/output/row_format.h"

namespace melflow {

class SectionFile {
 public:
  /// `path`: of the output; `in_place`: the number of its rows that stay (RowPlan::Section);
  /// `existing`: how a file at `path` is treated that is not extended.
  SectionFile(const RowFormat& format, const std::string& path,
              std::optional<std::int64_t> in_place, Existing existing);

  /// The path of the work file for rows to be added to the output at `path`, without `.part`.
  static std::string added_path(const std::string& path);
  /// The path of the work file, without `.part`.
  [[nodiscard]] const std::string& work_path() const { return work_path_; }

  /// Opens the output, where it is to be extended; nothing is changed yet.
  void open_output();
  /// Opens the work file; `resumes`: continues that of an interrupted run.
  void open(bool resumes);
  [[nodiscard]] bool is_open() const { return work_ != nullptr; }
  /// The file that has the rows: the work file, or after add_in_place() the output.
  [[nodiscard]] RowPartFile& operator*() const { return is_in_place_ ? *output_ : *work_; }
  [[nodiscard]] RowPartFile* operator->() const { return &**this; }

  /// Puts the rows of the work file behind those that stay; `rows`: of both together. Nothing where
  /// no rows stay.
  void add_in_place(std::int64_t rows);
  /// Restores the output that was to be extended, and so closes it.
  void take_back_in_place();

  // When the run ends:
  /// Makes the work file stay whatever happens to the program.
  void stay() { work_->stay(); }
  /// Removes the work file of rows that are in the output now; nothing where no rows stayed.
  void remove_added();
  /// Removes the work file, unless it is complete and about to get its name, and closes all.
  void drop();
  /// Closes all; unless it is to stay, the work file is removed.
  void close();

 private:
  const RowFormat* format_;
  std::string path_, work_path_;
  std::optional<std::int64_t> in_place_;
  Existing existing_;
  std::unique_ptr<RowPartFile> work_, output_;  // output_: where rows stay, from open_output() on
  bool is_in_place_ = false;                    // the rows of work_ are in output_
};

}  // namespace melflow
