// Makes the index of a corpus from the user's options: lists the files, looks up their labels and
// targets, and puts them into splits.
#pragma once

#include <functional>
#include <span>
#include <string>

#include "stages/corpus/file_list_options.h"
#include "stages/corpus/folder_scan.h"
#include "stages/manifest.h"
#include "stages/run_task.h"

namespace melflow {

class PythonCorpus;

struct ListingContext {
  std::span<const EarlierFile> earlier = {};  ///< the files of the outputs that are updated
  WholeFiles* whole = nullptr;                ///< as RunTask::whole
  /// Where not null, gets the files below the root that `include` does not match.
  NotTaken* not_taken = nullptr;
  PythonCorpus* given = nullptr;  ///< the corpus of the option `call`
  /// The name of the node where the run has other corpora, which may share the splits; else "".
  std::string source = {};
};
/// Lists a corpus; passes warnings about it as a whole to `warn`. Throws RunError when there is no
/// file (unless files may still come: ListingContext::whole), a folder or table cannot be read, a
/// table has an invalid value, or the requested splits cannot be made.
Manifest list_corpus(const FileListOptions& options, const std::function<void(std::string)>& warn,
                     const ListingContext& context = {});

/// Reads the lists that the options name, as list_corpus() does, but searches no folder: passes a
/// run's warnings about the lists to `warn`, and throws RunError where a run would.
void check_lists(const FileListOptions& options, const std::function<void(std::string)>& warn);

/// A source whose lists can be read before a run.
class ReadsLists {
 public:
  virtual ~ReadsLists() = default;
  /// Calls check_lists() for every corpus of the source; skips lists that do not exist.
  virtual void check_lists(const std::function<void(std::string)>& warn) const = 0;
  /// Asks Python for the recordings that it gives, which are then known by their paths
  /// (contained_item) as long as the source exists. Throws RunError.
  virtual void list_given() = 0;
};

}  // namespace melflow
