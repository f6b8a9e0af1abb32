// What a device's kernels are told of a front end: the plan that the processor's kernel works by too,
// as the plain numbers that cuda/ takes. So the two cannot drift apart, and cuda/ knows no mel plan.
#pragma once

#include "cuda/front_end.h"
#include "stages/features/mel/mel_plan.h"

namespace melflow {

cuda::FrontEnd kernel_front_end(const MelPlan& plan);

}  // namespace melflow
