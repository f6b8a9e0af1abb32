// uring_engine.h - opens and reads many files at once by io_uring, without a thread for each.
//
// In:  items with a FileRef.
// Out: emissions with RawBytes, in the order in which they finish.

#pragma once

#include <memory>
#include <string>

#include "pipeline/stage/stage_kinds.h"
#include "stages/audio/reading/file_reader.h"

namespace melflow {

// Says why io_uring cannot be used here, "" if it can: the build lacks it, the kernel is too old
// (before 5.6), or it is not allowed (in most containers).
std::string uring_refusal();

// Makes an engine that reads at most `depth` items at once; null if the system refuses a ring after
// all. `reader` must outlive it.
std::unique_ptr<Engine> make_uring_engine(const FileReader& reader, int depth);

}  // namespace melflow
