// A small bitmap font for the labels of pictures.
#pragma once

namespace melflow {

inline constexpr int kGlyphWidth = 5;   // [pixels], without the space between characters
inline constexpr int kGlyphHeight = 8;  // [pixels], seven above the base line and one below

/// Whether pixel (x, y) of this character is set; x goes to the right, y down.
bool font_pixel(char c, int x, int y);

}  // namespace melflow
