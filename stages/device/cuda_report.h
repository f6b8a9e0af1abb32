// cuda_report.h - what devices did in a run, for its report.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "cuda/device_monitor.h"
#include "cuda/slot_pool.h"
#include "pipeline/number_type.h"
#include "pipeline/value.h"

namespace melflow {

// When nothing is under way. `uses`: of the devices of `slots`, in their order, or why nothing is
// known of them.
std::vector<std::pair<std::string, Value>> cuda_report(cuda::SlotPool& slots, NumberType rows,
                                                       const cuda::DeviceUses& uses);

// Of one device: what went through it in a second, from the first batch to the last. `use`: for the
// link; null or without one: its share is not said.
Value rates_value(int device, const cuda::SlotTimes& times, const cuda::DeviceUse* use);

// One way over a PCI Express link, after its coding; 0: not known. [bytes/s]
double link_rate(unsigned generation, unsigned slots);

}  // namespace melflow
