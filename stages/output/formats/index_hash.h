// The identity of the index of an output: a hash of its entries and attributes, the same for both
// formats.
#pragma once

#include <cstdint>
#include <string>

#include "stages/output/formats/feature_data.h"
#include "stages/output/formats/output_index.h"

namespace melflow {

/// The name of the attribute that holds the hash.
inline constexpr const char* kIndexHash = "index_hash";

/// XXH3 (64 bits) as 16 hexadecimal digits, of an index that is written and of one that was read.
/// It leaves out the shape and type of the rows, and their positions for each split.
std::string index_hash(const OutputIndex& index);
std::string index_hash(const FeatureData& data);

/// A hash that the outputs of one run share, in the same form: of the paths of all its files and
/// the hashes of their rows.
std::string run_hash(const OutputIndex& index);

}  // namespace melflow
