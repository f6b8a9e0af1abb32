// OutputIndex as datasets and attributes of the HDF5 file: everything in it but the rows.
#pragma once

#include <hdf5.h>

#include "stages/output/formats/output_index.h"

namespace melflow {

/// `rows` is the dataset of rows of `file`, called index.info.name. Throws RunError.
void write_layout(hid_t file, hid_t rows, const OutputIndex& index);
/// Reads all of it back from the complete file. Throws RunError where it is not what was written.
void check_layout(hid_t file, const OutputIndex& index);

}  // namespace melflow
