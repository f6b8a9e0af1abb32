#pragma once
#include "stages/other_names.h"
namespace melflow::other_names {
std::span<const OtherName> of_stack();
std::span<const OtherName> of_fit_rows();
std::span<const OtherName> of_sliding_cmvn();
std::span<const OtherValue> values_of_stack();
}  // namespace melflow::other_names
