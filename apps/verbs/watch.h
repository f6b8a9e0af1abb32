// `melflow update --watch`: updates whenever new or changed files are whole, until a signal.
#pragma once

#include <atomic>
#include <functional>
#include <memory>

#include "apps/verbs/plan_arguments.h"
#include "stages/corpus/whole_files.h"
#include "stages/run_task.h"

namespace melflow {

/// Updates once, with the files that are whole; a signal sets `interrupted`. Returns the exit
/// status.
using UpdateOnce =
    std::function<int(const std::shared_ptr<WholeFiles>& whole, std::atomic<bool>& interrupted)>;

/// Calls `update` when it has something to do; `still`: how long a file must not have changed to be
/// whole [s]. Returns the exit status: that of an update which failed as a whole, or kDone after a
/// signal.
int watch_and_update(const PlanArguments& arguments, Update how, double still,
                     const UpdateOnce& update);

}  // namespace melflow
