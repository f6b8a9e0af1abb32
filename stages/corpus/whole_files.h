// Tells files that are still being written from whole ones, for an update beside a recorder.
#pragma once

#include <chrono>
#include <string>
#include <unordered_map>

#include "stages/manifest.h"

namespace melflow {

class WholeFiles {
 public:
  using Seconds = std::chrono::duration<double>;
  explicit WholeFiles(Seconds still) : still_(still) {}

  /// Returns whether size and times of the file have not changed for that time: since it was first
  /// asked for with this stamp, or by the clock of this machine. A path without a file is not
  /// whole. From one thread at a time.
  bool is_whole(const std::string& path);

 private:
  struct Seen {
    FileStamp stamp;
    std::chrono::steady_clock::time_point since;
  };
  const Seconds still_;
  std::unordered_map<std::string, Seen> seen_;  // by path, while times alone do not tell
};

}  // namespace melflow
