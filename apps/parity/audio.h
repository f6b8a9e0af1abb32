// Recordings as the mel stage of a pipeline would get them.
//
// In:  sound files, a sample rate [Hz].
// Out: mono samples at that rate, by the stages disk_read, decode (downmix: mean) and resample.
#pragma once

#include <string>
#include <vector>

namespace melflow {

struct ParityRecording {
  std::string path;
  std::vector<float> samples;
  int file_rate = 0;    ///< [Hz] of the file itself
  std::string problem;  ///< why there are no samples, "" when there are
};

std::vector<ParityRecording> read_recordings(const std::vector<std::string>& paths,
                                             int sample_rate);

}  // namespace melflow
