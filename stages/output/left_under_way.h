// What a process that ended was decoding, and what the next run does about it (decision 19).
#pragma once

#include <string>

#include "pipeline/stage/run_context.h"
#include "stages/files/under_way.h"
#include "stages/output/checkpoints.h"

namespace melflow {

/// The recordings noted in the journal of the output at `path`, which another program wrote; none
/// while that program runs, or where the journal cannot be read.
UnderWay::Entries left_under_way(const std::string& path);

/// From now on the run notes in that journal which recordings it decodes, beginning with those of
/// `left` that are in its list of files and not done yet; these it reports as of the output at
/// `path`. Does nothing for the second output of a run. Throws RunError.
void note_under_way(RunContext& run, const std::string& path, const UnderWay::Entries& left,
                    Checkpoints& journal);

}  // namespace melflow
