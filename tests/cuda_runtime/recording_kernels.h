// Kernels of the recording runtime: a row tells which samples its frame begins with.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cuda/mel_kernels.h"

namespace melflow::test {

/// What a launch does: rows [n_frames, columns] of recorded_value(), out of 16-bit samples.
void recorded_rows(const cuda::MelKernels::Launch& launch, std::size_t columns);
float recorded_value(std::int16_t first_sample, std::size_t column);

}  // namespace melflow::test
