// stack_step.h - joins neighbouring frames to one row, and skips frames between rows.
//
// In:  rows [n, columns] of one utterance.
// Out: rows [stacked_rows(n), frames * columns]. Row i has frames i hop - left to
//      i hop - left + frames - 1.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <variant>

#include "stages/features/mel/option_table.h"
#include "stages/features/mel/utterance_steps.h"

namespace melflow {

struct StackOptions {
  // Frames before the first: copies of it, or `value`.
  enum class Head { replicate, value };
  friend constexpr auto names(Head) { return choice_names("replicate", "value"); }
  // drop: a row ends within the utterance. Else there is a row for every `hop` frames, also begun
  // ones, and frames after the last are copies of it, or `value`.
  enum class Tail { drop, replicate, value };
  friend constexpr auto names(Tail) { return choice_names("drop", "replicate", "value"); }
  // frame_major: the columns of the first frame, then those of the second, ...
  // band_major: the frames of the first column, then those of the second, ...
  enum class Order { frame_major, band_major };
  friend constexpr auto names(Order) { return choice_names("frame_major", "band_major"); }

  int frames = 2;
  std::optional<int> hop = {};  // [frames] from a row to the next; not set: `frames`
  int left = 0;                 // frames of row 0 that are before the utterance, less than `frames`
  Head head = Head::replicate;
  Tail tail = Tail::drop;
  double value = 0.0;
  Order order = Order::frame_major;

  using Member =
      std::variant<int StackOptions::*, std::optional<int> StackOptions::*, double StackOptions::*,
                   Head StackOptions::*, Tail StackOptions::*, Order StackOptions::*>;
};

std::int64_t stacked_rows(const StackOptions& options, std::int64_t rows);

std::shared_ptr<const FinishStep> stack_step(const StackOptions& options);

}  // namespace melflow
