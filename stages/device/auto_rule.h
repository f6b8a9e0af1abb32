// auto_rule.h - decides by an estimate whether devices are worth opening for a job. The rule is not
// based on measurements of devices: it keeps cheap and short jobs on the processor.
#pragma once

#include <optional>
#include <string>

#include "stages/features/mel/mel_plan.h"
#include "stages/items.h"

namespace melflow {

// Rough estimates of the time [s] that one core of the processor takes.
struct DeviceGain {
  double rows = 0;     // to compute rows, which a device would take over
  double packing = 0;  // to put samples into page-locked memory and to take rows out of it
};
// For `files` recordings with `samples` samples in total.
DeviceGain device_gain(const MelPlan& plan, const std::optional<WindowGrid>& grid, double files,
                       double samples);

// The reason why the processor keeps the job; "" where devices are to be opened: when rows take at
// least twice as long as packing, and `workers` cores `least` seconds or more; always when `least` is 0.
std::string why_on_cpu(const DeviceGain& gain, int workers, double least);

}  // namespace melflow
