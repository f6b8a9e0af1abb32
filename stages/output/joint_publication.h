// Publishes the outputs of one run together, or none: after an interruption the next run finds all
// of them, or the work files of all of them.
//
// Threads: the run's own, before the first row and after the last one. Lifetime: that of the run;
// what the sinks give it has to live as long. Errors: as of Publication; after one, no output of
// the run has its name.
#pragma once

#include <functional>
#include <iterator>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "stages/files/publication.h"

namespace melflow {

/// A service of a run, for its sinks' start() and finish().
class JointPublication {
 public:
  /// Adds names that the files of the output at `path` may have; may be called again with more.
  void announce(const std::string& path, const std::vector<OutputName>& names) {
    outputs_.insert(path);
    names_.insert(names_.end(), names.begin(), names.end());
  }
  /// Completes what an interrupted run began with any of the outputs, all of which must be
  /// announced, and clears up after it. Returns the outputs that have their names now. Throws
  /// RunError as Publication::recover() does.
  std::vector<std::string> recover(bool may_change) {
    std::vector<std::string> out;
    for (const std::string& path : outputs_)
      if (Publication::recover(path, names_, may_change)) out.push_back(path);
    for (const auto& clear : std::exchange(clear_, {}))
      if (may_change) clear();
    return out;
  }
  /// Announces one more output that will be completed. `clear` removes what is left of an
  /// interrupted run that had published this output.
  void expect(std::function<void()> clear) {
    ++missing_;
    clear_.push_back(std::move(clear));
  }
  /// Adds a complete output: its files, in the order in which they get their names. The last
  /// output's call publishes all, and calls every `published`. `files` must live as long as the
  /// run. Throws RunError as Publication does.
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
  std::string path_;  // of the first output
  std::vector<PartFile*> files_;
  std::vector<std::function<void()>> published_;
  int missing_ = 0;
  bool sync_ = false;
};

}  // namespace melflow
