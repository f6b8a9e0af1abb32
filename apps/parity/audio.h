// Reads recordings as the mel stage of a pipeline would get them.
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
  int file_rate = 0;    ///< rate of the file itself [Hz]
  std::string problem;  ///< the reason why there are no samples, "" when there are
};

std::vector<ParityRecording> read_recordings(const std::vector<std::string>& paths,
                                             int sample_rate);
/// The test signals (signals.h), under their names.
std::vector<ParityRecording> signal_recordings(int sample_rate);

}  // namespace melflow
