// column_step.h - a step of an utterance for some columns of its rows; the others stay as they are.
#pragma once

#include <memory>

#include "stages/features/mel/utterance_steps.h"

namespace melflow {

// Does `step` with columns [first, first + count); where it makes them more or fewer, those behind
// them move.
std::shared_ptr<const FinishStep> column_step(std::shared_ptr<const FinishStep> step, int first,
                                              int count);

}  // namespace melflow
