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
// Its hash has no key, and it may come from anywhere (a shared folder, an archive): it counts only
// for files that the next run makes, too, and only where it belongs to the user.
//
// Then earlier files become `<name>.replaced`, from the last in the list to the first; `.part`
// files get their names, from the first to the last; earlier files are removed, and `.commit` at
// the end. So files of two runs never have their names at the same time, and the last file of the
// list has its name only when all others of its run have theirs.
//
// A program that is interrupted in between leaves `.commit` behind, and the next run with that
// output completes the steps. When a step fails, all steps are undone; the complete `.part` files
// and `.commit` stay, and a later run tries again before it makes new files.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "stages/files/part_file.h"

namespace melflow {

/// What the files of an output may be called: `begin`, or whatever begins with that and ends with
/// `end`, as those of its splits do.
struct OutputName {
  std::string begin;
  std::optional<std::string> end = {};
};

class Publication {
 public:
  /// Gives the complete files `all` of the output at `path` their names, in that order; with `sync`
  /// everything is on disk when it returns. Throws RunError that says which files are there now.
  static void publish(const std::string& path, std::span<PartFile* const> all, bool sync);

  /// Throws RunError, as check_side_file() does, where a file is in the way of publish() or
  /// recover().
  static void check(const std::string& path);

  /// Completes what an interrupted program had begun; false where there is nothing to do. `names`:
  /// of all files that this run may make. Throws RunError, and changes nothing, when another run is
  /// doing so, files of other names or users are listed, or there is anything to do and not
  /// `may_change`; also when it cannot be done.
  static bool recover(const std::string& path, std::span<const OutputName> names,
                      bool may_change = true);

  /// The path of the user's `.commit` file that lists the output file `name`; "" without one.
  static std::string waiting(const std::string& name);
};

}  // namespace melflow
