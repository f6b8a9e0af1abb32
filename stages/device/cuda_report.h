// cuda_report.h - reports what the devices did in a run.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "cuda/device_monitor.h"
#include "cuda/slot_pool.h"
#include "pipeline/base/number_type.h"
#include "pipeline/base/value.h"

namespace melflow {

// Returns the entries of the report; to be called when no batch is in flight. `uses`: how much each
// device of `slots` was used, in the same order, or why that is not known.
std::vector<std::pair<std::string, Value>> cuda_report(cuda::SlotPool& slots, NumberType rows,
                                                       const cuda::DeviceUses& uses);

// Returns the rates of one device per second between its first batch and its last. `use` has the
// speed of its link; where that is null or unknown, the share of the link is omitted.
Value rates_value(int device, const cuda::SlotTimes& times, const cuda::DeviceUse* use);

// The speed of a PCI Express link in one direction, without coding overhead [bytes/s]; 0: not
// known.
double link_rate(unsigned generation, unsigned width);

}  // namespace melflow
