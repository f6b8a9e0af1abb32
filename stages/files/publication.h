// Gives the files of one output their names together: either all of them get their names, or none
// does and the earlier files are there again.
//
// Where there are several files, or they are to be on disk, this takes several steps. They are
// written down before the first step, in `<path>.commit`:
//
//   16 bytes   "melflow names 1\n"
//   8 bytes    XXH3 of the rest
//   per file   a byte (Existing), its name in the folder of <path> or its whole path, '\0'
//
// Then earlier files become `<name>.replaced`, from the last in the list to the first; `.part` files
// get their names, from the first to the last; earlier files are removed, and `.commit` at the end.
// So files of two runs never have their names at the same time, and the last file of the list has
// its name only when all others of its run have theirs.
//
// A program that is ended in between leaves `.commit` behind, and the next run with that output
// completes the steps. When a step fails, all steps are undone; the complete `.part` files and
// `.commit` stay, and a later run tries again before it makes new files.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "stages/files/part_file.h"

namespace melflow {

class Publication {
 public:
  /// Gives the complete files `all` of the output at `path` their names, in that order; with `sync`
  /// everything is on disk when it returns. Throws RunError that says which files are there now.
  static void publish(const std::string& path, std::span<PartFile* const> all, bool sync);

  /// Completes what a program that was ended had begun; false where there is nothing to do. Throws
  /// RunError when another run is doing so, or it cannot be done.
  static bool recover(const std::string& path);

  /// The path of the `.commit` file that lists the output file `name`; "" without one.
  static std::string waiting(const std::string& name);
};

}  // namespace melflow
