// Predicts the lengths that stages make of a recording whose length is known.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "stages/items.h"

namespace melflow {

struct RecordingLength {
  int sample_rate = 0;       ///< [Hz]
  std::int64_t samples = 0;  ///< at that rate
  std::int64_t rows = -1;    ///< -1: it is not cut into rows
};

/// A stage that reads headers.
class ReadsLength {
 public:
  virtual ~ReadsLength() = default;
  /// The length of what it would give for a file, by the file's header; nothing where that does not say it, or would be
  /// refused. Opens the file.
  [[nodiscard]] virtual std::optional<RecordingLength> length_in_header(
      const FileRef& file) const = 0;
};

/// A stage of whose output the length follows from that of its input.
class TellsLength {
 public:
  virtual ~TellsLength() = default;
  /// Nothing where it is not known without the samples, or the stage would refuse them.
  [[nodiscard]] virtual std::optional<RecordingLength> length_of(RecordingLength in) const = 0;
};

}  // namespace melflow
