// A picture of rows: time to the right, low bands at the bottom, with axes and a scale of levels.
#pragma once

#include <string>
#include <vector>

namespace melflow {

struct Spectrogram {
  std::vector<float> values;  ///< [frames, bands]
  std::size_t frames = 0, bands = 0;
  std::string unit;
  double shown = 0;             ///< range of levels drawn below the highest one; 0: all
  std::vector<double> band_hz;  ///< [bands] centre frequencies
  double first_frame = 0;       ///< number of the first frame on the time axis
  double frame_seconds = 0;     ///< time from frame to frame [s]; 0: the axis counts frames or rows
  std::string axis = "frame";   ///< the unit of an axis that counts frames or rows
  std::string title;
};

/// A drawing as a document of SVG, with text as text and the cells as PNG.
struct Drawn {
  std::string svg;
  int width = 0, height = 0;  ///< [pixels]
};

/// Draws spectrograms below each other, with their left edges aligned. Many frames are averaged in
/// groups, few are drawn wide. Those with the same unit share their colours, and those with the
/// same frame time share a time scale, so that levels and lengths can be compared by eye. Throws
/// RunError when there is no frame.
Drawn draw(const std::vector<Spectrogram>& all);

/// Returns at most `most` round numbers in [lowest, highest], which are 1, 2 or 5 times a power of
/// ten apart.
std::vector<double> ticks(double lowest, double highest, int most);

/// The unit of the drawn values, and how many levels are shown.
struct Levels {
  std::string unit;
  double shown = 0;  ///< as Spectrogram::shown: 80 dB in this unit, or 0 where the unit is no level
};
/// Converts linear values in the unit of /mel ("power", "amplitude") to decibels. Logarithms ("dB",
/// "ln power", "log10 amplitude") and values in other units stay as they are.
Levels to_levels(std::vector<float>& values, const std::string& unit);

}  // namespace melflow
