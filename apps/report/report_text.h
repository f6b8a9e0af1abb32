// The report of a run as text that fits one screen.
#pragma once

#include <string>

#include "pipeline/run/runner.h"

namespace melflow {

/// Returns the counts of a run's files by outcome, and its outputs. Lines end with '\n'.
std::string accounts_text(const RunReport& report, const Plan& plan);

/// Returns a line for each stage, memory, the machine and the limits of a run; for a run that kept
/// everything, a single line that says so. `verbose`: adds details omitted for short runs, the
/// slowest files and the limits.
std::string tables_text(const RunReport& report, bool verbose = false);

/// Returns the warnings about the run as a whole, one per line, without those about the plan, which
/// were shown before.
std::string warnings_text(const RunReport& report, const Plan& plan);

}  // namespace melflow
