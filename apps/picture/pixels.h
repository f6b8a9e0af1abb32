// Levels as pixels. Their colours go from dark violet through red and orange to bright yellow;
// lightness rises evenly, so equal steps of level look equal, also when printed in grey.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace melflow {

struct Rgb {
  std::uint8_t r = 0, g = 0, b = 0;
  friend bool operator==(const Rgb&, const Rgb&) = default;
};

inline constexpr int kLevels = 256;

/// The level, 0 (dark) to kLevels - 1 (bright), of a share from 0 to 1; other shares are clamped,
/// NaN is dark.
std::uint8_t level_of(double share);
/// The colour of that level.
Rgb colour_of(double share);

/// Returns a picture of levels [height, width], the upper row first, as the URL of a PNG that
/// contains it ("data:image/png;base64,..."). Throws RunError.
std::string png_url(int width, int height, const std::vector<std::uint8_t>& levels);

}  // namespace melflow
