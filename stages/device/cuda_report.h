// cuda_report.h - the report on what the devices did in a run.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "cuda/device_monitor.h"
#include "cuda/slot_pool.h"
#include "pipeline/base/number_type.h"
#include "pipeline/base/value.h"

namespace melflow {

// The entries of the report; to be called when no batch is under way. `uses`: how much each device
// of `slots` was used, in the same order, or why that is not known.
std::vector<std::pair<std::string, Value>> cuda_report(cuda::SlotPool& slots, NumberType rows,
                                                       const cuda::DeviceUses& uses);

// The rates of one device per second between its first batch and its last. `use` gives the speed of
// its link; where that is null or unknown, the share of the link is omitted.
Value rates_value(int device, const cuda::SlotTimes& times, const cuda::DeviceUse* use);

// The speed of a PCI Express link in one direction, without coding overhead [bytes/s]; 0: not
// known.
double link_rate(unsigned generation, unsigned width);

}  // namespace melflow
