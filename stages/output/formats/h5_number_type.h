// Types of values as HDF5 has them.
#pragma once

#include <optional>

#include "pipeline/number_type.h"
#include "stages/output/formats/column_type.h"
#include "stages/output/formats/hdf5.h"

namespace melflow {

/// Little-endian; float16 as h5py and numpy write and expect it, bfloat16 as HDF5 2.0 defines
/// H5T_FLOAT_BFLOAT16LE: eight bits of exponent, seven of mantissa.
Hid h5_number_type(NumberType type);
/// Of values beside the rows; texts of any length, UTF-8 by name.
Hid h5_type(ColumnType type);
/// Nothing for any other type.
std::optional<NumberType> number_type_of(hid_t type);

}  // namespace melflow
