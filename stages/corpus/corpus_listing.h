// Makes the index of a corpus from what the user says of it: lists the files, looks up their labels
// and targets, and puts them into splits.
#pragma once

#include <functional>
#include <string>

#include "stages/corpus/earlier_files.h"
#include "stages/corpus/file_list_options.h"
#include "stages/corpus/folder_scan.h"
#include "stages/manifest.h"

namespace melflow {

/// Passes warnings about the corpus as a whole to `warn`. `earlier`: the earlier output in an
/// update, else null. Throws RunError when there is no file, a folder or table cannot be read, a
/// table has an invalid value, or the splits asked for cannot be made. `not_taken`, where it is not
/// null, gets the files below the root that include does not name. `is_all`: there is no other
/// corpus in the run, so that its splits can be judged by themselves.
Manifest list_corpus(const FileListOptions& options, const std::function<void(std::string)>& warn,
                     const EarlierFiles* earlier = nullptr, NotTaken* not_taken = nullptr,
                     bool is_all = true);

/// Reads the lists that the options name, as list_corpus() does, and searches no folder: passes
/// what a run would warn about them to `warn`, and throws RunError where it would.
void check_lists(const FileListOptions& options, const std::function<void(std::string)>& warn);

/// A source whose lists can be read before a run.
class ReadsLists {
 public:
  virtual ~ReadsLists() = default;
  /// check_lists() of every corpus of the source; not of lists that are not there.
  virtual void check_lists(const std::function<void(std::string)>& warn) const = 0;
};

}  // namespace melflow
