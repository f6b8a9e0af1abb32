// The outputs of one run get their names together, or none does: should the program be ended, the
// next run finds all of them, or work on all of them to go on with.
#pragma once

#include <functional>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "stages/files/publication.h"

namespace melflow {

/// Among the services of a run; for its sinks' start() and finish().
class JointPublication {
 public:
  /// One more output is going to be complete.
  void expect() { ++missing_; }
  /// Adds a complete output: its files, in the order in which they get their names. With the last
  /// one all get theirs, and every `published` is called. `files` live as long as the run. Throws
  /// RunError as Publication does.
  void complete(const std::string& path, const std::vector<PartFile*>& files, bool sync,
                std::function<void()> published) {
    if (files_.empty()) path_ = path;
    files_.insert(files_.end(), files.begin(), files.end());
    published_.push_back(std::move(published));
    sync_ = sync_ || sync;
    if (--missing_ > 0) return;
    Publication::publish(path_, files_, sync_);
    for (const auto& tell : published_) tell();
  }

 private:
  std::string path_;  // of the first
  std::vector<PartFile*> files_;
  std::vector<std::function<void()>> published_;
  int missing_ = 0;
  bool sync_ = false;
};

}  // namespace melflow
