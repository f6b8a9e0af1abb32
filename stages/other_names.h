// What other libraries call an option of a stage: whoever writes it is told what it is here. One
// list a stage; a stage names its own where it describes its options.
#pragma once

#include <span>

#include "pipeline/schema.h"

namespace melflow::other_names {

std::span<const OtherName> of_mel();
std::span<const OtherName> of_mfcc();
std::span<const OtherName> of_deltas();
std::span<const OtherName> of_resample();
std::span<const OtherName> of_segment();
std::span<const OtherName> of_decode();
std::span<const OtherName> of_batch();
std::span<const OtherName> of_file_list();
std::span<const OtherName> of_row_sink();

}  // namespace melflow::other_names
