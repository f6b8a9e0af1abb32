// The test signals of the golden vectors, made of integers so that any language makes the same
// ones; tests/golden/signals.py says how and made the checksums.
//
// In:  a signal's name and a sample rate [Hz].
// Out: int16 mono samples.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace melflow {

/// Makes the signal `name` at this rate [Hz]. Throws std::invalid_argument that names all signals
/// for any other name.
std::vector<std::int16_t> parity_signal(std::string_view name, int sample_rate);

/// FNV-1a, 32 bits, over the little-endian bytes.
std::uint32_t fnv1a(std::span<const std::int16_t> samples);

}  // namespace melflow
