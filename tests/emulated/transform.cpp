#include "tests/emulated/transform.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "stages/features/mel/real_fft.h"

namespace melflow::test {
namespace {

constexpr float nan = std::numeric_limits<float>::quiet_NaN();

}  // namespace

struct Transform::Parts {
  std::size_t n;
  RealFft<float> fft;
};

Transform::Transform(int n) : parts_(new Parts{static_cast<std::size_t>(n), RealFft<float>(n)}) {}
Transform::~Transform() = default;

// A library may compute two real transforms as one complex one: a value that is not finite in one
// of the two then spoils both.
void Transform::run(const float* in, float* out, std::size_t batch) const {
  const std::size_t n = parts_->n, values = n / 2 * 2 + 2;
  AlignedBuffer from(n), to(values);
  AlignedArray<double> work = parts_->fft.make_work();
  bool spoils = false;  // the second transform of the pair
  for (std::size_t t = 0; t < batch; ++t, in += n, out += values) {
    // Most of a chunk has no frames.
    if (std::all_of(in, in + n, [](float x) { return x == 0; })) {
      std::fill_n(out, values, std::exchange(spoils, false) ? nan : 0.0F);
      continue;
    }
    const bool is_finite = std::all_of(in, in + n, [](float x) { return std::isfinite(x); });
    std::copy_n(in, n, from.data());
    parts_->fft.execute(from.data(), to.data(), work);
    std::copy_n(to.data(), values, out);
    if (std::exchange(spoils, t % 2 == 0 && !is_finite)) std::fill_n(out, values, nan);
    if (t % 2 == 1 && !is_finite) std::fill_n(out - values, values, nan);
  }
}

}  // namespace melflow::test
