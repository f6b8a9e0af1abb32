// The samples to compare: recordings, as the mel stage of a pipeline would get them, or test
// signals.
//
// In:  sound files, or a signal's name; a sample rate [Hz].
// Out: mono samples at that rate, of files by the stages disk_read, decode (downmix: mean) and
//      resample. Signals are computed with integers, so that any language produces the same ones;
//      tests/golden/signals.py defines them and computed the checksums.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace melflow {

struct ParityRecording {
  std::string path;
  std::vector<float> samples;
  int file_rate = 0;    ///< sample rate of the file itself [Hz]
  std::string problem;  ///< why there are no samples; "" when there are
};

std::vector<ParityRecording> read_recordings(const std::vector<std::string>& paths,
                                             int sample_rate);
/// The test signals, under their names.
std::vector<ParityRecording> signal_recordings(int sample_rate);

/// Makes the signal `name` at this rate [Hz]. For any other name, throws std::invalid_argument that
/// names all signals.
std::vector<std::int16_t> parity_signal(std::string_view name, int sample_rate);

/// FNV-1a, 32 bits, over the little-endian bytes.
std::uint32_t fnv1a(std::span<const std::int16_t> samples);

}  // namespace melflow
