// auto_rule.h - decides by an estimate whether a job is long enough to open devices for it. The
// rule is not based on measurements of devices: it keeps short and cheap jobs on the processor.
#pragma once

#include <optional>
#include <string>

#include "stages/features/mel/mel_plan.h"
#include "stages/items.h"

namespace melflow {

// A rough estimate of the time [s] that one core of the processor takes for the rows of `files`
// recordings with `samples` samples in total.
double cpu_seconds(const MelPlan& plan, const std::optional<WindowGrid>& grid, double files,
                   double samples);

// The reason why the processor keeps the job; "" where devices are to be opened, which is when
// `workers` cores would take `least` seconds or more.
std::string why_on_cpu(double seconds_of_a_core, int workers, double least);

}  // namespace melflow
