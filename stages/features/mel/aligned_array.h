// aligned_array.h - numbers in memory as vectors and FFTW's plans want it.

#pragma once

#include <algorithm>
#include <cstddef>
#include <new>
#include <utility>

namespace melflow {

// Numbers, zeroed, move-only. All arrays have the same alignment, which FFTW's new-array execution
// needs: a plan for less aligned ones would change the last bits.
template <class Real>
class AlignedArray {
 public:
  static constexpr std::size_t alignment = 64;  // [bytes], a cache line

  AlignedArray() = default;
  explicit AlignedArray(std::size_t size)  // [numbers]
      : data_(
            static_cast<Real*>(::operator new (size * sizeof(Real), std::align_val_t{alignment}))),
        size_(size) {
    std::fill_n(data_, size_, Real{0});
  }
  AlignedArray(AlignedArray&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  AlignedArray& operator=(AlignedArray&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }
  ~AlignedArray() { ::operator delete (data_, std::align_val_t{alignment}); }

  Real* data() { return data_; }
  const Real* data() const { return data_; }
  std::size_t size() const { return size_; }

 private:
  Real* data_ = nullptr;
  std::size_t size_ = 0;
};

using AlignedBuffer = AlignedArray<float>;

}  // namespace melflow
