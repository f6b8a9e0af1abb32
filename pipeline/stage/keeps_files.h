// An interface of stages whose options name files that are read with them.
#pragma once

#include "pipeline/base/value.h"

namespace melflow {

/// A stage whose configuration can be read again without files that its options name.
class KeepsFiles {
 public:
  virtual ~KeepsFiles() = default;
  /// Puts in `settings`, the echo of the stage's options, what these files hold in place of their
  /// paths. Called after the stage's plan().
  virtual void keep_files(Value& settings) const = 0;
};

}  // namespace melflow
