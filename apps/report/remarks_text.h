// Lists single files at the end of a run: failed, skipped, with a warning.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "pipeline/run/runner.h"

namespace melflow {

/// Of `limit` warnings at most each as "path: stage: reason", failed files first and skipped ones
/// last; of more a line for each reason, with how many files it is of and the first of them, and
/// what lists all.
std::string remarks_text(const RunReport& report, const std::vector<Remark>& of_run,
                         std::size_t limit);

/// As remarks_text(), for files that failed, with their number and where the rest is first; "" when
/// none did.
std::string failures_text(const RunReport& report, const std::vector<Remark>& remarks,
                          std::size_t limit);

/// How many files are ok with a warning, the first of them and the command that lists all; "" when
/// none is.
std::string warned_text(const RunReport& report, const std::vector<Remark>& remarks);

/// How many files were skipped, the first of them and the command that lists all; "" when none was,
/// or when files failed: failures_text() counts them, too.
std::string skipped_text(const RunReport& report, const std::vector<Remark>& remarks);

}  // namespace melflow
