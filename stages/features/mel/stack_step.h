// stack_step.h - joins neighbouring frames to one row, and skips frames between rows.
//
// In:  rows [n, columns] of one utterance.
// Out: rows [stacked_rows(n), frames * columns]. Row i has frames i hop - left to
//      i hop - left + frames - 1.
#pragma once

#include <cstdint>
#include <memory>

#include "stages/features/mel/utterance_steps.h"

namespace melflow {

struct StackOptions {
  // Frames before the first: copies of it, or `value`.
  enum class Head { replicate, value };
  // drop: a row ends within the utterance. Else there is a row for every `hop` frames, also begun
  // ones, and frames after the last are copies of it, or `value`.
  enum class Tail { drop, replicate, value };
  // frame_major: the columns of the first frame, then those of the second, ...
  // band_major: the frames of the first column, then those of the second, ...
  enum class Order { frame_major, band_major };

  int frames = 2;
  int hop = 2;   // [frames] from a row to the next
  int left = 0;  // frames of row 0 that are before the utterance, less than `frames`
  Head head = Head::replicate;
  Tail tail = Tail::drop;
  double value = 0.0;
  Order order = Order::frame_major;
};

std::int64_t stacked_rows(const StackOptions& options, std::int64_t rows);

std::shared_ptr<const FinishStep> stack_step(const StackOptions& options);

}  // namespace melflow
