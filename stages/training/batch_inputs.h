// The inputs of the stage `batches`: the names of their rows in a batch, and whether several inputs
// can have the same samples.
#pragma once

#include <string>
#include <vector>

#include "pipeline/stage/paired_inputs.h"
#include "pipeline/stage/stage.h"
#include "stages/training/batch_source.h"

namespace melflow {

/// Returns the inputs with `names`, the option of that name. Reports conflicts to `check`; empty
/// where there are any, or a stage before an input has an error.
std::vector<BatchInput> batch_inputs(const std::vector<PairedInputs::Input>& inputs,
                                     const std::vector<std::string>& names, PlanCheck& check);

}  // namespace melflow
