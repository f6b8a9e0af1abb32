// What a process that ended was decoding, and what the next run does about it (decision 19).
#pragma once

#include <string>

#include "pipeline/stage/run_context.h"
#include "stages/files/under_way.h"
#include "stages/output/checkpoints.h"

namespace melflow {

/// What the journal of the output at `path`, of another program, says of recordings; nothing where that is still there, or
/// the journal cannot be read.
UnderWay::Entries left_under_way(const std::string& path);

/// From now on the run notes in that journal what it decodes, and first of what is `left` whatever is in its list of files and not
/// done yet; says that of the output at `path`. Does nothing for the second output of a run. Throws RunError.
void note_under_way(RunContext& run, const std::string& path, const UnderWay::Entries& left,
                    Checkpoints& journal);

}  // namespace melflow
