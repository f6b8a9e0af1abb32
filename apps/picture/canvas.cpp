#include "apps/picture/canvas.h"

#include <png.h>

#include <algorithm>

#include "apps/picture/font.h"
#include "pipeline/base/problem.h"

namespace melflow {

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

}  // namespace melflow
