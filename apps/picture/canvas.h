// An RGB picture to draw on, and to save as PNG.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace melflow {

struct Rgb {
  std::uint8_t r = 0, g = 0, b = 0;
  friend bool operator==(const Rgb&, const Rgb&) = default;
};

/// x to the right and y down, from 0. What lies outside is not drawn.
class Canvas {
 public:
  Canvas(int width, int height, Rgb background);

  [[nodiscard]] int width() const { return width_; }
  [[nodiscard]] int height() const { return height_; }
  [[nodiscard]] Rgb at(int x, int y) const { return pixels_[index(x, y)]; }
  void set(int x, int y, Rgb colour);
  void fill(int x, int y, int width, int height, Rgb colour);
  /// The outline just inside the rectangle.
  void frame(int x, int y, int width, int height, Rgb colour);
  /// The upper left corner of the text; `scale` pixels for one of the font.
  void text(int x, int y, const std::string& text, int scale, Rgb colour);

  static int text_width(const std::string& text, int scale);
  static int text_height(int scale);

  /// The bytes of such a file. Throws RunError.
  [[nodiscard]] std::string png() const;

 private:
  [[nodiscard]] std::size_t index(int x, int y) const {
    return static_cast<std::size_t>(y) * static_cast<std::size_t>(width_) +
           static_cast<std::size_t>(x);
  }
  int width_, height_;
  std::vector<Rgb> pixels_;
};

/// Each begins at the left edge; `background` is beside those that are less wide.
Canvas one_below_the_other(const std::vector<Canvas>& pictures, Rgb background);

}  // namespace melflow
