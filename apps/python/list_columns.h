// Entries of a batch for Python: rows, and columns of the file list.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "apps/python/arrays.h"
#include "stages/manifest.h"
#include "stages/output/training/sample_batch.h"

namespace melflow {

/// Adds rows as `name`, and as `length` how many each recording has.
void add_rows(SampleBatch::Rows rows, const std::string& name, const std::string& length,
              nb::dict& out);

/// Adds "path" and, where the list has them, "label" or "labels", "split", "target" and texts under
/// their names, with one entry for each of `files`.
void describe(const Manifest& list, const std::vector<std::int64_t>& files, nb::dict& out);

}  // namespace melflow
