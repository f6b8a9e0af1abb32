// The files of one output get their names together: all of them, or none and what was there before
// is there again.
//
// That takes several steps where there are several files, or where the system is to have them on
// disk. What is about to happen is written down before the first step, in `<path>.commit`:
//
//   16 bytes   "melflow names 1\n"
//   8 bytes    XXH3 of what follows
//   per file   a byte, how (Existing), its name in the folder of <path> or its whole path, '\0'
//
// Then earlier files become `<name>.replaced`, from the last in the list to the first; `.part` files
// get their names, from the first to the last; earlier files are removed, and `.commit` at the end.
// So files of two runs are never there at the same time, and the last of the list is there only with
// all the others of its run.
//
// A program that is ended in between leaves `.commit` behind, and the next run of that output
// carries it out. Where a step fails, all are undone. The complete `.part` files stay then, and so
// does `.commit`: a later run tries again before it makes new ones.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "stages/files/part_file.h"

namespace melflow {

class Publication {
 public:
  /// Files that are complete, in that order; with `sync` returns only when the system has all of it
  /// on disk. Throws RunError, saying what is there now.
  static void publish(const std::string& path, std::span<PartFile* const> all, bool sync);

  /// Carries out what a program that was ended had begun; false where there is nothing. Throws
  /// RunError when another run is at it, or it cannot be done.
  static bool recover(const std::string& path);

  /// The `.commit` beside `target` that names it, "" without one.
  static std::string waiting(const std::string& name);
};

}  // namespace melflow
