// Copies from a map of a file that others may cut off, which is then an error of the call and not
// a SIGBUS.
#pragma once

#include <cstddef>

namespace melflow {

/// Makes SIGBUS an error of mapped_copy(); all others go to who had the signal before. To be called
/// again from time to time, since others take the signal, too.
void take_bus_errors();

/// False where the file no longer has the bytes, or they cannot be read. `streams`: by
/// stream_copy().
bool mapped_copy(std::byte* to, const std::byte* from, std::size_t bytes, bool streams);

}  // namespace melflow
