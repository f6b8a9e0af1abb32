// Lists files at the end of a run: failed, skipped, or ok with a warning.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "pipeline/run/runner.h"

namespace melflow {

/// Lists up to `limit` warnings as "path: stage: reason", failed files first and skipped ones last.
/// If there are more, lists reasons instead, each with its number of files and the first of them,
/// and how to list all.
std::string remarks_text(const RunReport& report, const Remarks& of_run, std::size_t limit);

/// Lists failed files like remarks_text(), after their number and what became of the others; ""
/// when none failed.
std::string failures_text(const RunReport& report, const Remarks& remarks, std::size_t limit);

/// Returns how many files are ok with a warning, the first of them and the command that lists all;
/// "" when none is.
std::string warned_text(const RunReport& report, const Remarks& remarks);

/// Returns how many files were skipped, the first of them and the command that lists all; "" when
/// none was, or when files failed, since failures_text() counts both.
std::string skipped_text(const RunReport& report, const Remarks& remarks);

}  // namespace melflow
