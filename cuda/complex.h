// complex.h - a complex number of floats, and transforms of a few of them in registers.

#pragma once

#include "cuda/host_device.h"

namespace melflow::cuda {

// Eight bytes that a device moves at once.
struct alignas(8) Complex {
  float re, im;
};

MELFLOW_HD Complex operator+(Complex a, Complex b) { return {a.re + b.re, a.im + b.im}; }
MELFLOW_HD Complex operator-(Complex a, Complex b) { return {a.re - b.re, a.im - b.im}; }
MELFLOW_HD Complex operator*(Complex a, Complex b) {
  return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}
MELFLOW_HD Complex minus_i(Complex a, Complex b) { return {a.re + b.im, a.im - b.re}; }
MELFLOW_HD Complex plus_i(Complex a, Complex b) { return {a.re - b.im, a.im + b.re}; }
MELFLOW_HD float squared(Complex a) { return a.re * a.re + a.im * a.im; }

MELFLOW_HD void dft4(Complex& x0, Complex& x1, Complex& x2, Complex& x3) {
  const Complex a = x0 + x2, b = x0 - x2, c = x1 + x3, d = x1 - x3;
  x0 = a + c;
  x2 = a - c;
  x1 = minus_i(b, d);
  x3 = plus_i(b, d);
}

// Forward transform of R points in place, in natural order.
template <int R>
struct Dft;

template <>
struct Dft<4> {
  static MELFLOW_HD void run(Complex (&x)[4]) { dft4(x[0], x[1], x[2], x[3]); }
};

template <>
struct Dft<5> {
  static MELFLOW_HD void run(Complex (&x)[5]) {
    constexpr float c1 = 0.309016994F, c2 = -0.809016994F;  // cos 2 pi/5, cos 4 pi/5
    constexpr float s1 = 0.951056516F, s2 = 0.587785252F;
    const Complex a = x[1] + x[4], b = x[2] + x[3], c = x[1] - x[4], d = x[2] - x[3];
    const Complex p = {x[0].re + c1 * a.re + c2 * b.re, x[0].im + c1 * a.im + c2 * b.im};
    const Complex q = {x[0].re + c2 * a.re + c1 * b.re, x[0].im + c2 * a.im + c1 * b.im};
    const Complex r = {s1 * c.re + s2 * d.re, s1 * c.im + s2 * d.im};
    const Complex s = {s2 * c.re - s1 * d.re, s2 * c.im - s1 * d.im};
    x[0] = x[0] + a + b;
    x[1] = minus_i(p, r);
    x[4] = plus_i(p, r);
    x[2] = minus_i(q, s);
    x[3] = plus_i(q, s);
  }
};

template <>
struct Dft<8> {
  static MELFLOW_HD void run(Complex (&x)[8]) {
    dft4(x[0], x[2], x[4], x[6]);  // the even ones, transformed: x0 x2 x4 x6
    dft4(x[1], x[3], x[5], x[7]);
    constexpr float h = 0.707106781F;
    const Complex one = {(x[3].re + x[3].im) * h, (x[3].im - x[3].re) * h};    // x3 (1 - i)/sqrt 2
    const Complex three = {(x[7].im - x[7].re) * h, (x[7].re + x[7].im) * h};  // and its mirror
    const Complex e0 = x[0], e1 = x[2], e2 = x[4], e3 = x[6], o0 = x[1], o2 = x[5];
    x[0] = e0 + o0;
    x[4] = e0 - o0;
    x[1] = e1 + one;
    x[5] = e1 - one;
    x[2] = minus_i(e2, o2);
    x[6] = plus_i(e2, o2);
    x[3] = {e3.re + three.re, e3.im - three.im};
    x[7] = {e3.re - three.re, e3.im + three.im};
  }
};

template <>
struct Dft<16> {
  static MELFLOW_HD void run(Complex (&x)[16]) {
    constexpr float h = 0.707106781F, c = 0.923879533F, s = 0.382683432F;
    // exp(-2 pi i n / 16) for the products n = column * row of columns and rows 1 to 3.
    constexpr Complex w1 = {c, -s}, w2 = {h, -h}, w3 = {s, -c}, w6 = {-h, -h}, w9 = {-c, s};
    MELFLOW_UNROLL
    for (int b = 0; b < 4; ++b) dft4(x[b], x[b + 4], x[b + 8], x[b + 12]);
    x[5] = x[5] * w1;
    x[6] = x[6] * w2;
    x[7] = x[7] * w3;
    x[9] = x[9] * w2;
    x[10] = {x[10].im, -x[10].re};
    x[11] = x[11] * w6;
    x[13] = x[13] * w3;
    x[14] = x[14] * w6;
    x[15] = x[15] * w9;
    MELFLOW_UNROLL
    for (int a = 0; a < 16; a += 4) dft4(x[a], x[a + 1], x[a + 2], x[a + 3]);
    // Output a + 4 k is at 4 a + k.
    MELFLOW_UNROLL
    for (int a = 0; a < 4; ++a) {
      MELFLOW_UNROLL
      for (int k = a + 1; k < 4; ++k) {
        const Complex moved = x[4 * a + k];
        x[4 * a + k] = x[4 * k + a];
        x[4 * k + a] = moved;
      }
    }
  }
};

}  // namespace melflow::cuda
