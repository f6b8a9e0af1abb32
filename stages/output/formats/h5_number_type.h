// The HDF5 types of values.
#pragma once

#include <optional>

#include "pipeline/base/number_type.h"
#include "stages/output/formats/column_type.h"
#include "stages/output/formats/hdf5.h"

namespace melflow {

/// The HDF5 type of rows, little-endian: float16 as in h5py and numpy, bfloat16 as HDF5 2.0 defines
/// H5T_FLOAT_BFLOAT16LE (8 bits of exponent, 7 of mantissa).
Hid h5_number_type(NumberType type);
/// The HDF5 type of values beside the rows; texts are UTF-8 of any length.
Hid h5_type(ColumnType type);
/// The number type that `type` stands for; nothing for a type that melflow does not write.
std::optional<NumberType> number_type_of(hid_t type);

}  // namespace melflow
