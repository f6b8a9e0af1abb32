// The warning about a recording that is not as long as its header promises.
#pragma once

#include <cstdint>
#include <string>

#include <sndfile.h>

#include "stages/audio/decoders/sample_reader.h"
#include "stages/audio/decoders/sound_input.h"

namespace melflow {

struct EndedRecording {
  const SF_INFO& info;  ///< by its header
  bool is_count_known;  ///< whether the header gives the number of samples
  bool is_over;         ///< whether the file has no more samples; false: no more are wanted
};

/// The remark: what is wrong, where, and how much is missing; "" where nothing is wrong. `bytes`
/// reads the file, which has `size` bytes.
std::string end_remark(const EndedRecording& recording, const SampleReader& reader,
                       const ReadAt& bytes, std::uint64_t size);

}  // namespace melflow
