// timeline_observer.h - shows what the nodes of a run do as ranges in a profiler's timeline: a
// range for every item, named after the node, on the thread that processes it, or on no thread
// while an Engine has it.
#pragma once

#include <memory>

#include "pipeline/plan/plan.h"
#include "pipeline/report/observer.h"

namespace melflow {

/// Makes an observer for a run of this plan; null, which is no observer for Runner, where no
/// profiler is attached or the build has no CUDA.
std::unique_ptr<RunObserver> timeline_observer(const Plan& plan);

}  // namespace melflow
