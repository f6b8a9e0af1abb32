#include "tests/emulated/transform.h"

#include <algorithm>

#include "stages/features/mel/fftw.h"

namespace melflow::test {

struct Transform::Parts {
  std::size_t n;
  FftPlan plan;
};

Transform::Transform(int n) : parts_(new Parts{static_cast<std::size_t>(n), FftPlan(n)}) {}
Transform::~Transform() = default;

void Transform::run(const float* in, float* out, std::size_t batch) const {
  const std::size_t n = parts_->n, values = n / 2 * 2 + 2;
  AlignedBuffer from(n), to(values);
  for (std::size_t t = 0; t < batch; ++t, in += n, out += values) {
    // Most of a chunk has no frame.
    if (std::all_of(in, in + n, [](float x) { return x == 0; })) {
      std::fill_n(out, values, 0.0F);
      continue;
    }
    std::copy_n(in, n, from.data());
    parts_->plan.execute(from.data(), to.data());
    std::copy_n(to.data(), values, out);
  }
}

}  // namespace melflow::test
