// Indexes of large archives, which later runs need not make again: files in the user's folder for
// caches, which may be removed at any time.
#pragma once

#include <string>

#include "stages/containers/archive.h"

namespace melflow {

class KeptIndex {
 public:
  /// The place for the index of the archive at `path`; none for "", and where the user has no
  /// folder for caches.
  explicit KeptIndex(const std::string& path);

  /// Fills in an archive's index. False where there is none, or one of another state of the file.
  [[nodiscard]] bool load(Archive& archive) const;
  /// Keeps an index, where that is possible, and removes those that were not used for a long time.
  void store(const Archive& archive) const;

 private:
  std::string file_, archive_;
};

}  // namespace melflow
