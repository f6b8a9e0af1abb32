#include "apps/picture/colormap.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

namespace melflow {
namespace {

struct Linear {
  double r, g, b;
};

// B. Ottosson, "A perceptual color space for image processing" (2020): Oklab to linear sRGB.
Linear from_oklab(double lightness, double a, double b) {
  const double l = std::pow(lightness + 0.3963377774 * a + 0.2158037573 * b, 3);
  const double m = std::pow(lightness - 0.1055613458 * a - 0.0638541728 * b, 3);
  const double s = std::pow(lightness - 0.0894841775 * a - 1.2914855480 * b, 3);
  return {+4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s,
          -1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s,
          -0.0041960863 * l - 0.7034186147 * m + 1.7076147010 * s};
}

bool is_shown(const Linear& c) {
  const auto inside = [](double v) { return v >= -1e-9 && v <= 1 + 1e-9; };
  return inside(c.r) && inside(c.g) && inside(c.b);
}

// The transfer function of sRGB (IEC 61966-2-1).
std::uint8_t encode(double v) {
  v = std::clamp(v, 0.0, 1.0);
  const double s = v <= 0.0031308 ? 12.92 * v : 1.055 * std::pow(v, 1 / 2.4) - 0.055;
  return static_cast<std::uint8_t>(std::lround(255 * s));
}

Rgb make_colour(double level) {
  // Even in lightness; the hue turns from violet (290 degrees) over red to yellow (100 + 360).
  const double lightness = 0.13 + 0.84 * level;
  const double hue = (290 + 175 * std::pow(level, 0.85)) * std::numbers::pi / 180;
  // Colourful in the middle, nearly grey at both ends; less where the screen has no such colour.
  double chroma = 0.05 + 0.16 * std::sin(std::numbers::pi * std::pow(level, 0.8));
  while (true) {
    const Linear c = from_oklab(lightness, chroma * std::cos(hue), chroma * std::sin(hue));
    if (is_shown(c) || chroma <= 0) return {encode(c.r), encode(c.g), encode(c.b)};
    chroma = std::max(0.0, chroma - 0.002);
  }
}

}  // namespace

Rgb colour_of(double level) {
  static const auto table = [] {
    std::array<Rgb, 256> out{};
    for (std::size_t i = 0; i < out.size(); ++i)
      out[i] = make_colour(static_cast<double>(i) / (out.size() - 1));
    return out;
  }();
  if (std::isnan(level)) level = 0;
  return table[static_cast<std::size_t>(std::lround(255 * std::clamp(level, 0.0, 1.0)))];
}

}  // namespace melflow
