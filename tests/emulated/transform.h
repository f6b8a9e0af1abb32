// Real transforms for the emulated cuFFT.
#pragma once

#include <cstddef>
#include <memory>

namespace melflow::test {

class Transform {
 public:
  explicit Transform(int n);
  ~Transform();
  Transform(const Transform&) = delete;
  Transform& operator=(const Transform&) = delete;
  /// Transforms in [batch, n] to out [batch, n / 2 + 1], complex.
  void run(const float* in, float* out, std::size_t batch) const;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace melflow::test
