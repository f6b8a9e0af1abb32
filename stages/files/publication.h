// Gives the files of one output their names together: either all of them get their names, or none
// does and the earlier files are back in place.
//
// Where there are several files, or they must be on disk, this takes several steps, which are
// written down before the first one, in `<path>.commit`:
//
//   16 bytes   "melflow names 1\n"
//   8 bytes    XXH3 of the rest
//   per file   a byte (Existing), its name in the folder of <path> or its whole path, '\0'
//
// Its hash has no key, and it may come from anywhere (a shared folder, an archive), so it counts
// only for files that the next run also makes, and only where it belongs to the user.
//
// Then earlier files become `<name>.replaced`, from the last in the list to the first; `.part`
// files get their names, from the first to the last; earlier files are removed, and then `.commit`.
// So files of two runs never have their names at the same time, and the last file of the list gets
// its name only after all others of its run.
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

/// A name that files of an output may have: `begin`, or with `end` any name that begins with
/// `begin` and ends with `end`, like those of its splits.
struct OutputName {
  std::string begin;
  std::optional<std::string> end = {};
};

class Publication {
 public:
  /// Gives the complete files `all` of the output at `path` their names, in that order; with `sync`
  /// everything is on disk when it returns. Throws RunError that says which files exist now.
  static void publish(const std::string& path, std::span<PartFile* const> all, bool sync);

  /// Throws RunError, as check_side_file() does, where a file is in the way of publish() or
  /// recover().
  static void check(const std::string& path);

  /// Completes the steps that an interrupted program began; false where there are none. `names`: of
  /// all files that this run may make. Throws RunError, and changes nothing, when another run is
  /// completing them, files of other names or users are listed, or there are steps and not
  /// `may_change`; also when a step fails.
  static bool recover(const std::string& path, std::span<const OutputName> names,
                      bool may_change = true);

  /// Returns the path of the user's `.commit` file that lists the output file `name`, or "".
  static std::string waiting(const std::string& name);
};

}  // namespace melflow
