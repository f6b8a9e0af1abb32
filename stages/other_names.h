// The names that other libraries have for the options of stages, so that the message for an unknown
// option can give melflow's name. One list per stage; a stage names its list where it describes its
// options.
#pragma once

#include <span>

#include "pipeline/schema.h"

namespace melflow::other_names {

std::span<const OtherName> of_mel();
std::span<const OtherName> of_mfcc();
std::span<const OtherName> of_deltas();
std::span<const OtherName> of_resample();
std::span<const OtherName> of_segment();
std::span<const OtherName> of_trim_silence();
std::span<const OtherName> of_decode();
std::span<const OtherName> of_batch();
std::span<const OtherName> of_file_list();
std::span<const OtherName> of_row_sink();

}  // namespace melflow::other_names
