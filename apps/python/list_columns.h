// The columns of a file list for Python.
#pragma once

#include <cstdint>
#include <vector>

#include "apps/python/arrays.h"
#include "stages/manifest.h"

namespace melflow {

/// Adds "path" and, where the list has them, "label" or "labels", "split", "target" and texts under
/// their names, with one entry for each of `files`.
void describe(const Manifest& list, const std::vector<std::int64_t>& files, nb::dict& out);

}  // namespace melflow
