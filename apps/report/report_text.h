// The end of a run on one screen.
#pragma once

#include <string>
#include <vector>

#include "pipeline/runner.h"

namespace melflow {

/// What became of the files of a run, and its outputs. Lines end with '\n'.
std::string accounts_text(const RunReport& report, const Plan& plan);

/// Of a run: a line for each stage, memory, the machine, what held it back; of one that kept all that
/// was there, one line that says so.
std::string tables_text(const RunReport& report);

/// The first `limit` of the remarks as "path: stage: reason", failed files first and skipped ones last, then
/// the number of further ones, by reason.
std::string remarks_text(const RunReport& report, const std::vector<Remark>& of_run,
                         std::size_t limit);

/// As remarks_text(), for files that failed, with their number and where the rest is first; "" when none did.
std::string failures_text(const RunReport& report, const std::vector<Remark>& remarks,
                          std::size_t limit);

/// How many files are ok with a remark, the first of them and the command that lists all; "" when none is.
std::string warned_text(const RunReport& report, const std::vector<Remark>& remarks);

/// How many files were skipped, the first of them and the command that lists all; "" when none was, or
/// when files failed: failures_text() counts them, too.
std::string skipped_text(const RunReport& report, const std::vector<Remark>& remarks);

/// The remarks on the run as a whole, one per line, without those on the plan, which were shown
/// before.
std::string warnings_text(const RunReport& report, const Plan& plan);

}  // namespace melflow
