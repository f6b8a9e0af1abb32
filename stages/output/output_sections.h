// Assigns the files of a run to the files of an output, called sections: all to one, or each split
// to its own. Every section counts its rows from 0.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "pipeline/stage/run_context.h"
#include "stages/manifest.h"

namespace melflow {

/// The manifest of the run's source; null where the source lists no files or has no splits.
const Manifest* manifest_with_splits(const RunContext& run);

class OutputSections {
 public:
  OutputSections() = default;
  /// `split_files`: one section per split; `files`: number of the source's files.
  OutputSections(const std::string& path, bool split_files, const RunContext& run,
                 std::size_t files);

  [[nodiscard]] std::size_t size() const { return paths_.size(); }
  [[nodiscard]] const std::vector<std::string>& paths() const { return paths_; }
  [[nodiscard]] const std::string& path(std::size_t section) const { return paths_[section]; }
  /// The section has the files numbered [first, end).
  [[nodiscard]] std::size_t first(std::size_t section) const { return firsts_[section]; }
  [[nodiscard]] std::size_t end(std::size_t section) const { return firsts_[section + 1]; }
  /// The section of a file.
  [[nodiscard]] std::size_t of(std::size_t file) const;
  /// first() of every section.
  [[nodiscard]] std::vector<std::size_t> firsts() const {
    return {firsts_.begin(), firsts_.end() - 1};
  }

  /// Returns the path for a split: "out/features.h5" and "train" make "out/features.train.h5"; ""
  /// makes the path itself.
  static std::string path_of(const std::string& path, const std::string& split);
  /// Returns the splits that files beside `path` are named after, sorted; some may be other files.
  static std::vector<std::string> splits_beside(const std::string& path);

 private:
  std::vector<std::string> paths_;
  std::vector<std::size_t> firsts_;  // by section, and the end of the last one
};

}  // namespace melflow
