// A picture of rows: time to the right, low bands at the bottom, with axes and a scale of
// levels.
#pragma once

#include <string>
#include <vector>

#include "apps/picture/canvas.h"

namespace melflow {

struct Spectrogram {
  std::vector<float> values;  ///< [frames, bands]
  std::size_t frames = 0, bands = 0;
  std::string unit;
  double shown = 0;             ///< levels further below the highest one get its colour; 0: none
  std::vector<double> band_hz;  ///< [bands] centre frequencies
  double first_frame = 0;       ///< number of the first frame on the time axis
  double frame_seconds = 0;     ///< time from frame to frame [s]; 0: the axis counts frames or rows
  std::string axis = "frame";   ///< the unit of an axis that counts
  std::string title;
};

/// Draws a spectrogram. Many frames are drawn as means of groups, few are drawn wide. Throws
/// RunError when there is no frame.
Canvas draw(const Spectrogram& s);
/// Draws several spectrograms, one below the other, with their left edges in line. Those of the
/// same unit share their colours, and those whose frames take the same time a time scale: what
/// looks louder is louder, what looks longer is longer.
Canvas draw(const std::vector<Spectrogram>& all);

/// Round numbers in [lowest, highest], at most `most` of them: 1, 2 or 5 times a power of ten
/// apart.
std::vector<double> ticks(double lowest, double highest, int most);

/// What is drawn of values.
struct Levels {
  std::string unit;
  double shown = 0;  ///< as Spectrogram::shown: 80 dB in this unit, or 0 where it is no level
};
/// Converts values in the unit of /mel that are no logarithms ("power", "amplitude") to decibels;
/// logarithms ("dB", "ln power", "log10 amplitude") and what else there is stay what they are.
Levels to_levels(std::vector<float>& values, const std::string& unit);

}  // namespace melflow
