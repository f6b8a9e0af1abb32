// auto_rule.h - whether a job is worth opening devices for, by arithmetic. No figure of a device is
// behind it yet: it keeps short and cheap jobs where they are known to be fast.
#pragma once

#include <optional>
#include <string>

#include "stages/features/mel/mel_plan.h"
#include "stages/items.h"

namespace melflow {

// Roughly, of `files` recordings with `samples` samples in all: what the processor's rows take on
// one core. [s]
double cpu_seconds(const MelPlan& plan, const std::optional<WindowGrid>& grid, double files,
                   double samples);

// Why the processor keeps the job; "" where devices are to be opened. `least`: seconds of `workers`
// cores from which on they are.
std::string why_on_cpu(double seconds_of_a_core, int workers, double least);

}  // namespace melflow
