// The names that other libraries use for stages, options and values, so that the message about an
// unknown name can suggest melflow's. There is one list per stage; a stage names its lists where it
// describes its options.
//
// The settings of hand-written loaders are one list for all stages; a test compares it with its
// table in docs/dataset-builder.md.
#pragma once

#include <span>

#include "pipeline/options/schema.h"

namespace melflow::other_names {

std::span<const OtherName> of_mel();
std::span<const OtherName> of_mfcc();
std::span<const OtherName> of_deltas();
std::span<const OtherName> of_stack();
std::span<const OtherName> of_fit_rows();
std::span<const OtherName> of_sliding_cmvn();
std::span<const OtherName> of_resample();
std::span<const OtherName> of_segment();
std::span<const OtherName> of_trim_silence();
std::span<const OtherName> of_fit_samples();
std::span<const OtherName> of_normalize_samples();
std::span<const OtherName> of_decode();
std::span<const OtherName> of_batch();
std::span<const OtherName> of_file_list();
std::span<const OtherName> of_utterances();
std::span<const OtherName> of_row_sink();
std::span<const OtherName> of_audio_write();
std::span<const OtherName> of_filter();
std::span<const OtherName> of_loaders();

std::span<const OtherValue> values_of_mel();
std::span<const OtherValue> values_of_stack();
std::span<const OtherValue> values_of_fit_samples();
std::span<const OtherValue> values_of_normalize_samples();
std::span<const OtherValue> values_of_decode();
std::span<const OtherValue> values_of_resample();
std::span<const OtherValue> values_of_disk_read();
std::span<const OtherValue> values_of_file_list();
std::span<const OtherValue> values_of_utterances();
std::span<const OtherValue> values_of_row_sink();

}  // namespace melflow::other_names
