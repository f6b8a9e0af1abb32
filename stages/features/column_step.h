// column_step.h - applies a step of an utterance to some columns of its rows.
#pragma once

#include <memory>

#include "stages/features/mel/utterance_steps.h"

namespace melflow {

// Applies `step` to columns [first, first + count). If it changes their number, the columns after
// them move.
std::shared_ptr<const FinishStep> column_step(std::shared_ptr<const FinishStep> step, int first,
                                              int count);

}  // namespace melflow
