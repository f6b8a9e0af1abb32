// The inputs of the stage `batches`: the names of their rows in a batch, and whether several inputs
// can have the same samples.
#pragma once

#include <string>
#include <vector>

#include "pipeline/stage/paired_inputs.h"
#include "pipeline/stage/stage.h"
#include "stages/output/training/batch_source.h"

namespace melflow {

/// `names`: the option of that name. Reports what does not fit to `check`; empty where that, or
/// what is before an input, has an error.
std::vector<BatchInput> batch_inputs(const std::vector<PairedInputs::Input>& inputs,
                                     const std::vector<std::string>& names, PlanCheck& check);

}  // namespace melflow
