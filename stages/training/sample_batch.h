// Batches of samples for a training program.
//
// A sample is a row of frames (where recordings are cut into windows), or all rows of a recording.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "pipeline/base/memory.h"
#include "pipeline/base/number_type.h"
#include "pipeline/stage/item.h"

namespace melflow {

struct SampleBatch {
  struct Rows {
    /// Has memory for `samples` rows of the shape `row`, or recordings of `longest` such rows.
    Rows(BufferPool& pool, NumberType type, std::size_t samples,
         const std::vector<std::size_t>& row, std::optional<std::size_t> longest);

    /// [samples, frames, columns], or for whole recordings [samples, rows, columns], padded with 0
    /// to the longest. Without the last axis for rows of audio samples.
    Buffer data;
    NumberType type;
    std::vector<std::size_t> shape;
    std::vector<std::int64_t> lengths;  ///< of whole recordings [rows]; else empty
  };
  std::vector<Rows> inputs;           ///< by input, in the stage's order
  std::vector<std::int64_t> files;    ///< positions of their recordings in the list
  std::vector<std::int64_t> offsets;  ///< by sample: the row of its recording with which it begins
  /// By sample: the result of the recording to which it belongs; null if the recording has no
  /// results.
  std::vector<std::shared_ptr<const SubItem>> results;
  std::vector<std::int64_t> result_offsets;  ///< by sample: the row of its result, likewise
};

/// The reasons for skipping recordings that a program does not take.
inline constexpr const char* kInOtherSplit = "is in another split";
inline constexpr const char* kForOtherRank = "is for another rank";

}  // namespace melflow
