#include "apps/picture/pixels.h"

#include <png.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "apps/report/data_url.h"
#include "pipeline/base/problem.h"

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
  // Lightness is linear; the hue turns from violet (290 degrees) through red to yellow (100 + 360).
  const double lightness = 0.13 + 0.84 * level;
  const double hue = (290 + 175 * std::pow(level, 0.85)) * std::numbers::pi / 180;
  // Colourful in the middle, nearly grey at both ends; less where sRGB cannot show the colour.
  double chroma = 0.05 + 0.16 * std::sin(std::numbers::pi * std::pow(level, 0.8));
  while (true) {
    const Linear c = from_oklab(lightness, chroma * std::cos(hue), chroma * std::sin(hue));
    if (is_shown(c) || chroma <= 0) return {encode(c.r), encode(c.g), encode(c.b)};
    chroma = std::max(0.0, chroma - 0.002);
  }
}

const std::array<Rgb, kLevels>& colours() {
  static const auto table = [] {
    std::array<Rgb, kLevels> out{};
    for (std::size_t i = 0; i < out.size(); ++i)
      out[i] = make_colour(static_cast<double>(i) / (out.size() - 1));
    return out;
  }();
  return table;
}

}  // namespace

std::uint8_t level_of(double share) {
  return std::isnan(share)
             ? 0
             : static_cast<std::uint8_t>(std::lround((kLevels - 1) * std::clamp(share, 0.0, 1.0)));
}

Rgb colour_of(double share) { return colours()[level_of(share)]; }

std::string png_url(int width, int height, const std::vector<std::uint8_t>& levels) {
  static_assert(sizeof(Rgb) == 3, "the table of colours goes to libpng as it is");
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  image.width = static_cast<png_uint_32>(width);
  image.height = static_cast<png_uint_32>(height);
  image.format = PNG_FORMAT_RGB_COLORMAP;
  image.colormap_entries = kLevels;
  png_alloc_size_t bytes = 0;
  std::string out;
  for (const bool is_counted : {false, true}) {
    out.resize(bytes);
    if (png_image_write_to_memory(&image, is_counted ? out.data() : nullptr, &bytes, 0,
                                  levels.data(), 0, colours().data()) == 0)
      throw RunError(std::string("cannot make the picture: ") + image.message);
  }
  out.resize(bytes);
  return data_url("image/png", out);
}

}  // namespace melflow
