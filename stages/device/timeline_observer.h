// timeline_observer.h - what the nodes of a run do, as ranges in a profiler's timeline: one named
// after its node for every item, on the thread that worked on it, or beside all threads while an
// Engine had it.
#pragma once

#include <memory>

#include "pipeline/observer.h"
#include "pipeline/plan.h"

namespace melflow {

/// For a run of this plan. Null, which is what a Runner takes for none, where no profiler is
/// attached or the build is without CUDA.
std::unique_ptr<RunObserver> timeline_observer(const Plan& plan);

}  // namespace melflow
