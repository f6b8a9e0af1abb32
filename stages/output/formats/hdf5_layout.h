// Writes an OutputIndex as datasets and attributes of the HDF5 file: everything but the rows.
#pragma once

#include <cstdint>
#include <vector>

#include "stages/output/formats/output_index.h"
#include "stages/output/formats/row_file.h"

namespace melflow {

/// Completes the file with rows of `shape`: writes the index, reads it back, and throws RunError
/// where it differs.
void complete_hdf5(RowFile& file, const std::vector<std::uint64_t>& shape,
                   const OutputIndex& index);

}  // namespace melflow
