// An RGB picture to draw on and to save as PNG, with a small bitmap font for labels and colours for
// levels: dark violet through red and orange to bright yellow. Lightness rises evenly, so equal
// steps of level look equal, also when printed in grey.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace melflow {

struct Rgb {
  std::uint8_t r = 0, g = 0, b = 0;
  friend bool operator==(const Rgb&, const Rgb&) = default;
};

/// A picture whose x goes to the right and y down, from 0. Pixels outside are ignored.
class Canvas {
 public:
  Canvas(int width, int height, Rgb background);

  [[nodiscard]] int width() const { return width_; }
  [[nodiscard]] int height() const { return height_; }
  [[nodiscard]] Rgb at(int x, int y) const { return pixels_[index(x, y)]; }
  void set(int x, int y, Rgb colour);
  void fill(int x, int y, int width, int height, Rgb colour);
  /// Draws the outline just inside the rectangle.
  void frame(int x, int y, int width, int height, Rgb colour);
  /// Draws a text whose upper left corner is at (x, y); a pixel of the font takes `scale` pixels.
  void text(int x, int y, const std::string& text, int scale, Rgb colour);

  static int text_width(const std::string& text, int scale);
  static int text_height(int scale);

  /// The picture as the bytes of a PNG file. Throws RunError.
  [[nodiscard]] std::string png() const;

 private:
  [[nodiscard]] std::size_t index(int x, int y) const {
    return static_cast<std::size_t>(y) * static_cast<std::size_t>(width_) +
           static_cast<std::size_t>(x);
  }
  int width_, height_;
  std::vector<Rgb> pixels_;
};

/// Stacks pictures vertically, left-aligned; `background` fills the space beside narrower ones.
Canvas one_below_the_other(const std::vector<Canvas>& pictures, Rgb background);

inline constexpr int kGlyphWidth = 5;   // [pixels], without the space between characters
inline constexpr int kGlyphHeight = 8;  // [pixels], seven above the base line and one below

/// Whether pixel (x, y) of this character is set; x goes to the right, y down.
bool font_pixel(char c, int x, int y);

/// The colour of `level` from 0 (dark) to 1 (bright); other values are clamped, NaN is dark.
Rgb colour_of(double level);

}  // namespace melflow
