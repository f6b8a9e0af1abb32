#include "apps/picture/canvas.h"

#include <png.h>
#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "pipeline/base/problem.h"

namespace melflow {
namespace {

constexpr int kPerBlock = 14;
constexpr char kFirst = ' ';
constexpr char kLast = '~';

// The characters from ' ' to '~', fourteen side by side; the eighth row is below the base line.
// clang-format off
constexpr std::array kArt{
    //       !     "     #     $     %     &     '     (     )     *     +     ,     -
    "..... ..#.. .#.#. .#.#. ..#.. ##..# .##.. ..#.. ...#. .#... ..... ..... ..... .....",
    "..... ..#.. .#.#. .#.#. .#### ##..# #..#. ..#.. ..#.. ..#.. ..#.. ..#.. ..... .....",
    "..... ..#.. .#.#. ##### #.#.. ...#. #.#.. .#... .#... ...#. #.#.# ..#.. ..... .....",
    "..... ..#.. ..... .#.#. .###. ..#.. .#... ..... .#... ...#. .###. ##### ..... #####",
    "..... ..#.. ..... ##### ..#.# .#... #.#.# ..... .#... ...#. #.#.# ..#.. ..... .....",
    "..... ..... ..... .#.#. ####. #..## #..#. ..... ..#.. ..#.. ..#.. ..#.. ..##. .....",
    "..... ..#.. ..... .#.#. ..#.. #..## .##.# ..... ...#. .#... ..... ..... ..#.. .....",
    "..... ..... ..... ..... ..... ..... ..... ..... ..... ..... ..... ..... .#... .....",
    // .     /     0     1     2     3     4     5     6     7     8     9     :     ;
    "..... ....# .###. ..#.. .###. .###. ...#. ##### ..##. ##### .###. .###. ..... .....",
    "..... ....# #...# .##.. #...# #...# ..##. #.... .#... ....# #...# #...# .##.. .##..",
    "..... ...#. #..## ..#.. ....# ....# .#.#. ####. #.... ...#. #...# #...# .##.. .##..",
    "..... ..#.. #.#.# ..#.. ...#. ..##. #..#. ....# ####. ..#.. .###. .#### ..... .....",
    "..... .#... ##..# ..#.. ..#.. ....# ##### ....# #...# ..#.. #...# ....# .##.. .##..",
    ".##.. #.... #...# ..#.. .#... #...# ...#. #...# #...# ..#.. #...# ...#. .##.. ..#..",
    ".##.. #.... .###. .###. ##### .###. ...#. .###. .###. ..#.. .###. .##.. ..... .#...",
    "..... ..... ..... ..... ..... ..... ..... ..... ..... ..... ..... ..... ..... .....",
    // <     =     >     ?     @     A     B     C     D     E     F     G     H     I
    "...#. ..... .#... .###. .###. ..#.. ####. .###. ###.. ##### ##### .###. #...# .###.",
    "..#.. ..... ..#.. #...# #...# .#.#. #...# #...# #..#. #.... #.... #...# #...# ..#..",
    ".#... ##### ...#. ....# #.### #...# #...# #.... #...# #.... #.... #.... #...# ..#..",
    "#.... ..... ....# ...#. #.#.# #...# ####. #.... #...# ####. ####. #.### ##### ..#..",
    ".#... ##### ...#. ..#.. #.### ##### #...# #.... #...# #.... #.... #...# #...# ..#..",
    "..#.. ..... ..#.. ..... #.... #...# #...# #...# #..#. #.... #.... #...# #...# ..#..",
    "...#. ..... .#... ..#.. .###. #...# ####. .###. ###.. ##### #.... .#### #...# .###.",
    "..... ..... ..... ..... ..... ..... ..... ..... ..... ..... ..... ..... ..... .....",
    // J     K     L     M     N     O     P     Q     R     S     T     U     V     W
    "..### #...# #.... #...# #...# .###. ####. .###. ####. .#### ##### #...# #...# #...#",
    "...#. #..#. #.... ##.## ##..# #...# #...# #...# #...# #.... ..#.. #...# #...# #...#",
    "...#. #.#.. #.... #.#.# ##..# #...# #...# #...# #...# #.... ..#.. #...# #...# #...#",
    "...#. ##... #.... #.#.# #.#.# #...# ####. #...# ####. .###. ..#.. #...# #...# #.#.#",
    "...#. #.#.. #.... #...# #..## #...# #.... #.#.# #.#.. ....# ..#.. #...# .#.#. #.#.#",
    "#..#. #..#. #.... #...# #..## #...# #.... #..#. #..#. ....# ..#.. #...# .#.#. ##.##",
    ".##.. #...# ##### #...# #...# .###. #.... .##.# #...# ####. ..#.. .###. ..#.. #...#",
    "..... ..... ..... ..... ..... ..... ..... ..... ..... ..... ..... ..... ..... .....",
    // X     Y     Z     [     \     ]     ^     _     `     a     b     c     d     e
    "#...# #...# ##### .###. #.... .###. ..#.. ..... .#... ..... #.... ..... ....# .....",
    "#...# #...# ....# .#... #.... ...#. .#.#. ..... ..#.. ..... #.... ..... ....# .....",
    ".#.#. .#.#. ...#. .#... .#... ...#. #...# ..... ..... .###. ####. .###. .#### .###.",
    "..#.. ..#.. ..#.. .#... ..#.. ...#. ..... ..... ..... ....# #...# #.... #...# #...#",
    ".#.#. ..#.. .#... .#... ...#. ...#. ..... ..... ..... .#### #...# #.... #...# #####",
    "#...# ..#.. #.... .#... ....# ...#. ..... ..... ..... #...# #...# #.... #...# #....",
    "#...# ..#.. ##### .###. ....# .###. ..... ##### ..... .#### ####. .###. .#### .###.",
    "..... ..... ..... ..... ..... ..... ..... ..... ..... ..... ..... ..... ..... .....",
    // f     g     h     i     j     k     l     m     n     o     p     q     r     s
    "..##. ..... #.... ..#.. ...#. #.... .##.. ..... ..... ..... ..... ..... ..... .....",
    ".#... ..... #.... ..... ..... #.... ..#.. ..... ..... ..... ..... ..... ..... .....",
    "####. .#### ####. .##.. ..##. #..#. ..#.. ##.#. ####. .###. ####. .#### #.##. .####",
    ".#... #...# #...# ..#.. ...#. #.#.. ..#.. #.#.# #...# #...# #...# #...# ##..# #....",
    ".#... #...# #...# ..#.. ...#. ##... ..#.. #.#.# #...# #...# #...# #...# #.... .###.",
    ".#... .#### #...# ..#.. ...#. #.#.. ..#.. #.#.# #...# #...# ####. .#### #.... ....#",
    ".#... ....# #...# .###. #..#. #..#. .###. #.#.# #...# .###. #.... ....# #.... ####.",
    "..... .###. ..... ..... .##.. ..... ..... ..... ..... ..... #.... ....# ..... .....",
    // t     u     v     w     x     y     z     {     |     }     ~
    ".#... ..... ..... ..... ..... ..... ..... ...## ..#.. ##... .....",
    ".#... ..... ..... ..... ..... ..... ..... ..#.. ..#.. ..#.. .....",
    "####. #...# #...# #...# #...# #...# ##### ..#.. ..#.. ..#.. .#..#",
    ".#... #...# #...# #.#.# .#.#. #...# ...#. .#... ..#.. ...#. #.#.#",
    ".#... #...# #...# #.#.# ..#.. #...# ..#.. ..#.. ..#.. ..#.. #..#.",
    ".#... #...# .#.#. #.#.# .#.#. .#### .#... ..#.. ..#.. ..#.. .....",
    "..##. .#### ..#.. .#.#. #...# ....# ##### ...## ..#.. ##... .....",
    "..... ..... ..... ..... ..... .###. ..... ..... ..... ..... .....",};
// clang-format on

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

}  // namespace

Canvas::Canvas(int width, int height, Rgb background)
    : width_(width),
      height_(height),
      pixels_(static_cast<std::size_t>(width) * static_cast<std::size_t>(height), background) {}

void Canvas::set(int x, int y, Rgb colour) {
  if (x >= 0 && x < width_ && y >= 0 && y < height_) pixels_[index(x, y)] = colour;
}

void Canvas::fill(int x, int y, int width, int height, Rgb colour) {
  for (int j = y; j < y + height; ++j)
    for (int i = x; i < x + width; ++i) set(i, j, colour);
}

void Canvas::frame(int x, int y, int width, int height, Rgb colour) {
  fill(x, y, width, 1, colour);
  fill(x, y + height - 1, width, 1, colour);
  fill(x, y, 1, height, colour);
  fill(x + width - 1, y, 1, height, colour);
}

void Canvas::text(int x, int y, const std::string& text, int scale, Rgb colour) {
  for (const char c : text) {
    for (int j = 0; j < kGlyphHeight; ++j)
      for (int i = 0; i < kGlyphWidth; ++i)
        if (font_pixel(c, i, j)) fill(x + i * scale, y + j * scale, scale, scale, colour);
    x += (kGlyphWidth + 1) * scale;
  }
}

int Canvas::text_width(const std::string& text, int scale) {
  return text.empty() ? 0 : (static_cast<int>(text.size()) * (kGlyphWidth + 1) - 1) * scale;
}

int Canvas::text_height(int scale) { return (kGlyphHeight - 1) * scale; }

std::string Canvas::png() const {
  static_assert(sizeof(Rgb) == 3, "rows of pixels go to libpng as they are");
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  image.width = static_cast<png_uint_32>(width_);
  image.height = static_cast<png_uint_32>(height_);
  image.format = PNG_FORMAT_RGB;
  png_alloc_size_t bytes = 0;
  std::string out;
  for (const bool is_counted : {false, true}) {
    out.resize(bytes);
    if (png_image_write_to_memory(&image, is_counted ? out.data() : nullptr, &bytes, 0,
                                  pixels_.data(), 0, nullptr) == 0)
      throw RunError(std::string("cannot make the picture: ") + image.message);
  }
  out.resize(bytes);
  return out;
}

Canvas one_below_the_other(const std::vector<Canvas>& pictures, Rgb background) {
  int width = 0, height = 0;
  for (const Canvas& p : pictures) {
    width = std::max(width, p.width());
    height += p.height();
  }
  Canvas all(width, height, background);
  int top = 0;
  for (const Canvas& p : pictures) {
    for (int y = 0; y < p.height(); ++y)
      for (int x = 0; x < p.width(); ++x) all.set(x, top + y, p.at(x, y));
    top += p.height();
  }
  return all;
}

bool font_pixel(char c, int x, int y) {
  if (x < 0 || x >= kGlyphWidth || y < 0 || y >= kGlyphHeight) return false;
  // Bytes outside the font are drawn as a box.
  if (c < kFirst || c > kLast)
    return y < kGlyphHeight - 1 && (x == 0 || x == kGlyphWidth - 1 || y == 0 || y == 6);
  const int index = c - kFirst, line = index / kPerBlock * kGlyphHeight + y;
  const char* row = kArt[static_cast<std::size_t>(line)];
  return row[index % kPerBlock * (kGlyphWidth + 1) + x] == '#';
}

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
