// The report of a run as text for one screen.
#pragma once

#include <string>

#include "pipeline/run/runner.h"

namespace melflow {

/// What became of the files of a run, and its outputs. Lines end with '\n'.
std::string accounts_text(const RunReport& report, const Plan& plan);

/// Of a run: a line for each stage, memory, the machine, what held it back; of one that kept all
/// that was there, one line that says so. `verbose`: also what is omitted of a short run, the files
/// that took longest and what held it back.
std::string tables_text(const RunReport& report, bool verbose = false);

/// The warnings about the run as a whole, one per line, without those on the plan, which were shown
/// before.
std::string warnings_text(const RunReport& report, const Plan& plan);

}  // namespace melflow
