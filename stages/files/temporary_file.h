// Files without a name, for data that does not fit into memory; they vanish when closed.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "stages/files/unique_fd.h"

namespace melflow {

/// Makes an empty file in `folder`. On failure the result is empty, and errno says why.
UniqueFd temporary_file_in(const std::string& folder);
/// Makes a file with these bytes in $TMPDIR or /tmp. On failure the result is empty, too.
UniqueFd temporary_file(std::span<const std::byte> bytes);

}  // namespace melflow
