// The end of a run on one screen.
#pragma once

#include <string>
#include <vector>

#include "pipeline/runner.h"

namespace melflow {

/// Accounts, outputs, a line for each stage, memory. Lines end with '\n'.
std::string summary_text(const RunReport& report, const Plan& plan);

/// The first `limit` of them as "path: stage: reason", then how many more there are, by reason.
std::string remarks_text(const std::vector<Remark>& remarks, std::size_t limit);

/// The same of those that failed, with their number first; "" when none did.
std::string failures_text(const RunReport& report, const std::vector<Remark>& remarks,
                          std::size_t limit);

/// Remarks on the run as a whole, a line each; those of the plan, which are known before, left out.
std::string warnings_text(const RunReport& report, const Plan& plan);

}  // namespace melflow
