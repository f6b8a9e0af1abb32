// Colours for levels: dark violet through red and orange to a bright yellow. Lightness rises evenly
// all the way, so equal steps of level look like equal steps, on paper without colour too.
#pragma once

#include "apps/picture/canvas.h"

namespace melflow {

/// The colour of `level` from 0 (dark) to 1 (bright); other values are clamped, NaN is dark.
Rgb colour_of(double level);

}  // namespace melflow
