// Changes of options that would lift a limit, with the predicted gain.
#pragma once

#include <vector>

#include "apps/profile/limits.h"

namespace melflow {

/// For a run that is held back by a resource: changes of workers and concurrency, and of what makes
/// a stage cheaper.
std::vector<Hint> hints_for_resources(const Demands& demands);
/// For a run that lost the share `limits.share` of its time by memory or a queue.
std::vector<Hint> hints_for_loss(const Limits& limits, const RunReport& report);
/// For one that loads the audio before anything else: not to, which pays as far as loading and
/// computing go on at the same time; and a worker for each core.
std::vector<Hint> hints_for_loading(const Limits& limits, const RunReport& report);

}  // namespace melflow
