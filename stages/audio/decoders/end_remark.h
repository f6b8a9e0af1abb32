// What is said of a recording that gives no more samples: whether that is what its header promised.
#pragma once

#include <cstdint>
#include <string>

#include <sndfile.h>

#include "stages/audio/decoders/sample_reader.h"
#include "stages/audio/decoders/sound_input.h"

namespace melflow {

struct EndedRecording {
  const SF_INFO& info;  ///< by its header
  bool is_count_known;  ///< the header says how many samples there are
  bool is_over;         ///< there are no more; else nobody wants more
};

/// "" where nothing is wrong; else what is, where and how much is missing. `bytes` are those of the
/// file, `size` of them.
std::string end_remark(const EndedRecording& recording, const SampleReader& reader,
                       const ReadAt& bytes, std::uint64_t size);

}  // namespace melflow
