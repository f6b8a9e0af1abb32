// uring_engine.h - many files being opened and read at once by io_uring, without a thread for each.
//
// In:  items with a FileRef.
// Out: emissions with RawBytes, in whatever order they are done.

#pragma once

#include <memory>
#include <string>

#include "pipeline/stage_kinds.h"
#include "stages/audio/reading/file_reader.h"

namespace melflow {

// Why io_uring cannot be used here, empty if it can: the build has none, the kernel is too old
// (before 5.6), or it is not allowed (in most containers).
std::string uring_refusal();

// At most `depth` items at once. `reader` has to stay. Null where the system gives no ring after
// all.
std::unique_ptr<Engine> make_uring_engine(const FileReader& reader, int depth);

}  // namespace melflow
