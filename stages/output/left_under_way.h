// The files that an ended process was decoding, and how the next run treats them (decision 19).
#pragma once

#include <string>

#include "pipeline/stage/run_context.h"
#include "stages/files/under_way.h"
#include "stages/output/checkpoints.h"

namespace melflow {

/// Returns the recordings that another program noted in the journal of the output at `path`; none
/// while that program runs, or where the journal cannot be read.
UnderWay::Entries left_under_way(const std::string& path);

/// Makes the run note in that journal which recordings it decodes, beginning with those of `left`
/// that are in its list of files and not done yet; it reports these as of the output at `path`.
/// Does nothing for the second output of a run. Throws RunError.
void note_under_way(RunContext& run, const std::string& path, const UnderWay::Entries& left,
                    Checkpoints& journal);

}  // namespace melflow
