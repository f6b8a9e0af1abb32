// The interface of what measures a recording chunk by chunk.
#pragma once

#include "stages/measures.h"
#include "stages/quality/chunk.h"

namespace melflow {

/// Threads: one at a time.
class MeasuringKernel {
 public:
  virtual ~MeasuringKernel() = default;
  /// Takes the chunks of a recording, in order.
  virtual void push(const Chunk& chunk) = 0;
  /// Writes the values of the recording, after its last chunk, of which there is at least one.
  virtual void finish(MeasureValues& out) = 0;
};

}  // namespace melflow
