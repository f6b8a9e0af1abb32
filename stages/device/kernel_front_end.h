// Describes a front end to a device's kernels: turns the plan that the processor's kernel also uses
// into the plain numbers that cuda/ takes. So the two agree, and cuda/ needs no mel plan.
#pragma once

#include "cuda/front_end.h"
#include "stages/features/mel/mel_plan.h"

namespace melflow {

cuda::FrontEnd kernel_front_end(const MelPlan& plan);

}  // namespace melflow
