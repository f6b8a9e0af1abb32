// Copies from a file mapping. If another program truncates the file, the call fails instead of
// raising SIGBUS.
#pragma once

#include <cstddef>

namespace melflow {

/// Installs a SIGBUS handler that turns errors in mapped_copy() into its result and passes all
/// others to the previous handler. To be called repeatedly, since others may replace the handler.
void take_bus_errors();

/// Returns false where the file no longer has the bytes, or they cannot be read. `streams`: copies
/// with stream_copy().
bool mapped_copy(std::byte* to, const std::byte* from, std::size_t bytes, bool streams);

}  // namespace melflow
