// Changes of options that would lift a limit, with the predicted gain.
#pragma once

#include <string>
#include <vector>

#include "apps/profile/limits.h"

namespace melflow {

/// Hints for a run that is limited by a resource: changes of workers and concurrency, and options
/// that make a stage cheaper.
std::vector<Hint> hints_for_resources(const Demands& demands);
/// The hint for a run in which one node has too few slots; none where it may not have more.
std::vector<Hint> hints_for_slots(const Demands& demands, const std::string& node);
/// Hints for a run that lost the share `limits.share` of its time to memory or a queue.
std::vector<Hint> hints_for_loss(const Limits& limits, const RunReport& report);
/// Hints for a run that loads the audio before computing: loading concurrently, which gains as far
/// as loading and computing overlap; and a worker for each core.
std::vector<Hint> hints_for_loading(const Limits& limits, const RunReport& report);

}  // namespace melflow
