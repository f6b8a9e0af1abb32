// Publishes the outputs of one run together, or none: after an interruption the next run finds all
// of them, or the work files of all of them.
#pragma once

#include <functional>
#include <iterator>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "stages/files/publication.h"

namespace melflow {

/// Among the services of a run; for its sinks' start() and finish().
class JointPublication {
 public:
  /// The files of the output at `path` may have these names. More than once where more is known.
  void announce(const std::string& path, const std::vector<OutputName>& names) {
    outputs_.insert(path);
    names_.insert(names_.end(), names.begin(), names.end());
  }
  /// Completes what an interrupted run had begun with any of the outputs, all of which are
  /// announced, and clears up after it. Returns those that have their names now. Throws RunError as
  /// Publication::recover() does.
  std::vector<std::string> recover(bool may_change) {
    std::vector<std::string> out;
    for (const std::string& path : outputs_)
      if (Publication::recover(path, names_, may_change)) out.push_back(path);
    for (const auto& clear : std::exchange(clear_, {}))
      if (may_change) clear();
    return out;
  }
  /// One more output is going to be complete. `clear` removes what an interrupted run left that
  /// was.
  void expect(std::function<void()> clear) {
    ++missing_;
    clear_.push_back(std::move(clear));
  }
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
  std::set<std::string> outputs_;
  std::vector<OutputName> names_;
  std::vector<std::function<void()>> clear_;
  std::string path_;  // of the first
  std::vector<PartFile*> files_;
  std::vector<std::function<void()>> published_;
  int missing_ = 0;
  bool sync_ = false;
};

}  // namespace melflow
