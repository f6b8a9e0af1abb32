#include "stages/features/mel/mel_window.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace melflow {
namespace {

using Window = MelOptions::Window;

// x runs from 0 to 1 over the window's period.
double window_value(const MelOptions& o, double x, double period) {
  const double phase = 2.0 * std::numbers::pi * x;
  switch (o.window) {
    case Window::hann:
      return 0.5 - 0.5 * std::cos(phase);
    case Window::hamming: {
      // 1 - 0.54 is not quite 0.46.
      const double rest = o.hamming_alpha == kHammingAlpha ? 0.46 : 1.0 - o.hamming_alpha;
      return o.hamming_alpha - rest * std::cos(phase);
    }
    case Window::blackman: {
      const double rest = o.blackman_coeff == kBlackmanCoeff ? 0.08 : 0.5 - o.blackman_coeff;
      return o.blackman_coeff - 0.5 * std::cos(phase) + rest * std::cos(2.0 * phase);
    }
    case Window::blackman_harris:
      return 0.35875 - 0.48829 * std::cos(phase) + 0.14128 * std::cos(2.0 * phase) -
             0.01168 * std::cos(3.0 * phase);
    case Window::nuttall:
      return 0.3635819 - 0.4891775 * std::cos(phase) + 0.1365995 * std::cos(2.0 * phase) -
             0.0106411 * std::cos(3.0 * phase);
    case Window::kaiser: {
      const double from_middle = 2.0 * x - 1.0;
      const double inside = std::sqrt(std::max(0.0, 1.0 - from_middle * from_middle));
      return std::cyl_bessel_i(0.0, o.kaiser_beta * inside) / std::cyl_bessel_i(0.0, o.kaiser_beta);
    }
    case Window::gauss: {
      const double from_middle = (x - 0.5) * period / *o.gauss_std;
      return std::exp(-0.5 * from_middle * from_middle);
    }
    case Window::bartlett:
      return 1.0 - std::abs(2.0 * x - 1.0);
    case Window::cosine:
      return std::sin(std::numbers::pi * (x * period + 0.5) / (period + 1.0));
    case Window::sine:
      return std::sin(0.5 * phase);
    case Window::tukey: {
      const double from_end = std::min(x, 1.0 - x);
      if (2.0 * from_end >= o.tukey_alpha) return 1.0;
      return 0.5 - 0.5 * std::cos(2.0 * std::numbers::pi * from_end / o.tukey_alpha);
    }
    case Window::povey:
      return std::pow(0.5 - 0.5 * std::cos(phase), 0.85);
    case Window::boxcar:
    case Window::values:
      break;
  }
  return 1.0;
}

}  // namespace

std::vector<double> make_window(const MelOptions& o) {
  if (o.window == MelOptions::Window::values) return o.window_values.numbers;
  const int length = *o.win_length;
  if (length == 1) return {1.0};
  const double period = o.periodic ? length : length - 1;
  std::vector<double> window;
  window.reserve(static_cast<std::size_t>(length));
  for (int i = 0; i < length; ++i) window.push_back(window_value(o, i / period, period));
  return window;
}

}  // namespace melflow
