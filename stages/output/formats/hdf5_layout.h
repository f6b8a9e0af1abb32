// Writes an OutputIndex as datasets and attributes of the HDF5 file: everything but the rows.
#pragma once

#include <hdf5.h>

#include "stages/output/formats/output_index.h"

namespace melflow {

/// Writes the index to `file`. `rows`: its dataset of rows, named index.info.name. Throws RunError.
void write_layout(hid_t file, hid_t rows, const OutputIndex& index);
/// Reads the index back from the complete file. Throws RunError where it differs from `index`.
void check_layout(hid_t file, const OutputIndex& index);

}  // namespace melflow
