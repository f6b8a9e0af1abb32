// lane_point.h - complex points, each lane in its own transform, and the roots of unity of short
// transforms; for lane_loops_body.h, under the same rules.

#pragma once

#include "stages/features/mel/lane_loops.h"
#include "stages/features/mel/lane_vector.h"

namespace melflow::lanes {
namespace {

struct Point {
  Lanes re, im;

  MELFLOW_INLINE static Point load(const float* from) {
    return {Lanes::load(from), Lanes::load(from + width)};
  }
  MELFLOW_INLINE void store(float* to) const {
    re.store(to);
    im.store(to + width);
  }
  MELFLOW_INLINE Point operator+(Point o) const { return {re + o.re, im + o.im}; }
  MELFLOW_INLINE Point operator-(Point o) const { return {re - o.re, im - o.im}; }
  MELFLOW_INLINE Point times(const float* w) const {
    const Lanes w_re = Lanes::all(w[0]), w_im = Lanes::all(w[1]);
    return {mul_sub(re, w_re, im * w_im), mul_add(re, w_im, im * w_re)};
  }
};
constexpr int point = 2 * width;  // [floats]

// a - i b and a + i b.
MELFLOW_INLINE Point minus_i(Point a, Point b) { return {a.re + b.im, a.im - b.re}; }
MELFLOW_INLINE Point plus_i(Point a, Point b) { return {a.re - b.im, a.im + b.re}; }

// [R][q], cos(2 pi q / R) and sin(2 pi q / R) for q up to (R - 1) / 2, for odd R only.
constexpr float cos_of[14][7] = {
    {},
    {},
    {},
    {1.0F, -0.5F},
    {},
    {1.0F, 0.309016994F, -0.809016994F},
    {},
    {1.0F, 0.623489802F, -0.222520934F, -0.900968868F},
    {},
    {},
    {},
    {1.0F, 0.841253533F, 0.415415013F, -0.142314838F, -0.654860734F, -0.959492974F},
    {},
    {1.0F, 0.885456026F, 0.568064747F, 0.120536680F, -0.354604887F, -0.748510748F, -0.970941817F}};
constexpr float sin_of[14][7] = {
    {}, {},
    {}, {0.0F, 0.866025404F},
    {}, {0.0F, 0.951056516F, 0.587785252F},
    {}, {0.0F, 0.781831482F, 0.974927912F, 0.433883739F},
    {}, {},
    {}, {0.0F, 0.540640817F, 0.909631995F, 0.989821442F, 0.755749574F, 0.281732557F},
    {}, {0.0F, 0.464723172F, 0.822983866F, 0.992708874F, 0.935016243F, 0.663122658F, 0.239315664F}};

}  // namespace
}  // namespace melflow::lanes
