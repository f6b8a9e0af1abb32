// number_types.h - types of samples, operands and rows; the same values on host and device.
//
// float16 is IEEE 754 binary16, bfloat16 the upper half of a float; both are rounded to nearest,
// ties to even, and a float16 beyond 65504 becomes infinite.

#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "cuda/complex.h"
#include "cuda/host_device.h"
#include "pipeline/base/float16.h"
#include "pipeline/base/number_type.h"

#if defined(__CUDACC__)
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#endif

namespace melflow::cuda {

using melflow::NumberType;
enum class SampleType { int16, float32 };

constexpr std::size_t bytes_of(SampleType type) { return type == SampleType::float32 ? 4 : 2; }

MELFLOW_HD std::uint32_t bits_of(float value) {
#if defined(__CUDA_ARCH__)
  return __float_as_uint(value);
#else
  std::uint32_t bits = 0;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
#endif
}

MELFLOW_HD float float_of(std::uint32_t bits) {
#if defined(__CUDA_ARCH__)
  return __uint_as_float(bits);
#else
  float value = 0.0F;
  std::memcpy(&value, &bits, sizeof value);
  return value;
#endif
}

MELFLOW_HD std::uint16_t float16_bits(float value) {
#if defined(__CUDA_ARCH__)
  // The device has a single NaN, different from that of to_float16().
  if (value != value) return static_cast<std::uint16_t>((bits_of(value) >> 16 & 0x8000U) | 0x7E00U);
  return __half_as_ushort(__float2half_rn(value));
#else
  return to_float16(value);
#endif
}

MELFLOW_HD float float_of_float16(std::uint16_t half) {
#if defined(__CUDA_ARCH__)
  return __half2float(__ushort_as_half(half));
#else
  const std::uint32_t sign = (half & 0x8000U) << 16, magnitude = half & 0x7FFFU;
  if (magnitude >= 0x7C00U) return float_of(sign | 0x7F800000U | (magnitude & 0x3FFU) << 13);
  // The exponent's bias is 112 smaller; a multiplication by 2^112 also converts denormals.
  return float_of(sign | bits_of(float_of(magnitude << 13) * 0x1p112F));
#endif
}

MELFLOW_HD std::uint16_t bfloat16_bits(float value) {
#if defined(__CUDA_ARCH__)
  return __bfloat16_as_ushort(__float2bfloat16_rn(value));
#else
  return to_bfloat16(value);
#endif
}

// A complex number as stored between the passes of a transform.
template <NumberType type>
struct Operand;

template <>
struct Operand<NumberType::float32> {
  using Stored = Complex;
  static MELFLOW_HD Stored pack(Complex z) { return z; }
  static MELFLOW_HD Complex unpack(Stored z) { return z; }
};

template <>
struct Operand<NumberType::float16> {
  using Stored = std::uint32_t;
  static MELFLOW_HD Stored pack(Complex z) {
#if defined(__CUDA_ARCH__)
    const __half2 both = __floats2half2_rn(z.re, z.im);
    return *reinterpret_cast<const std::uint32_t*>(&both);
#else
    return float16_bits(z.re) | static_cast<std::uint32_t>(float16_bits(z.im)) << 16;
#endif
  }
  static MELFLOW_HD Complex unpack(Stored z) {
    return {float_of_float16(static_cast<std::uint16_t>(z & 0xFFFFU)),
            float_of_float16(static_cast<std::uint16_t>(z >> 16))};
  }
};

template <>
struct Operand<NumberType::bfloat16> {
  using Stored = std::uint32_t;
  static MELFLOW_HD Stored pack(Complex z) {
#if defined(__CUDA_ARCH__)
    const __nv_bfloat162 both = __floats2bfloat162_rn(z.re, z.im);
    return *reinterpret_cast<const std::uint32_t*>(&both);
#else
    return bfloat16_bits(z.re) | static_cast<std::uint32_t>(bfloat16_bits(z.im)) << 16;
#endif
  }
  static MELFLOW_HD Complex unpack(Stored z) {
    return {float_of(z << 16), float_of(z & 0xFFFF0000U)};
  }
};

// Two consecutive samples, as loaded: they are not converted until needed, so that a device need
// not wait for one load before it starts the next.
template <class Sample>
struct SamplePair;

template <>
struct SamplePair<std::int16_t> {
  std::uint32_t both;

  MELFLOW_HD float first() const { return static_cast<float>(static_cast<std::int16_t>(both)); }
  MELFLOW_HD float second() const {
    return static_cast<float>(static_cast<std::int16_t>(both >> 16));
  }
};

template <>
struct SamplePair<float> {
  Complex both;

  MELFLOW_HD float first() const { return both.re; }
  MELFLOW_HD float second() const { return both.im; }
};

MELFLOW_HD SamplePair<std::int16_t> make_pair(std::int16_t first, std::int16_t second) {
  return {static_cast<std::uint16_t>(first) |
          static_cast<std::uint32_t>(static_cast<std::uint16_t>(second)) << 16};
}
MELFLOW_HD SamplePair<float> make_pair(float first, float second) { return {{first, second}}; }

// Loads from an address that is aligned for both. Samples are read once, so they need not stay in a
// device's cache.
MELFLOW_HD SamplePair<std::int16_t> load_pair(const std::int16_t* from) {
#if defined(__CUDA_ARCH__)
  return {__ldcs(reinterpret_cast<const unsigned*>(from))};
#else
  return make_pair(from[0], from[1]);
#endif
}
MELFLOW_HD SamplePair<float> load_pair(const float* from) {
#if defined(__CUDA_ARCH__)
  const float2 both = __ldcs(reinterpret_cast<const float2*>(from));
  return {{both.x, both.y}};
#else
  return make_pair(from[0], from[1]);
#endif
}

// For tables that no kernel writes.
MELFLOW_HD Complex read_only(const Complex* from) {
#if defined(__CUDA_ARCH__)
  const float2 both = __ldg(reinterpret_cast<const float2*>(from));
  return {both.x, both.y};
#else
  return *from;
#endif
}

// The levels of a row, in one of the types.
struct Row {
  std::byte* levels;
  NumberType type;

  MELFLOW_HD void store(int at, float value) const {
    if (type == NumberType::float32) {
      reinterpret_cast<float*>(levels)[at] = value;
    } else {
      reinterpret_cast<std::uint16_t*>(levels)[at] =
          type == NumberType::float16 ? float16_bits(value) : bfloat16_bits(value);
    }
  }
};

// Rows [frames, columns] in one of the types; the first level of a row is in column `levels_at`.
class Rows {
 public:
  Rows() = default;
  Rows(void* data, NumberType type, int columns, int levels_at)
      : levels_(static_cast<std::byte*>(data) +
                static_cast<std::size_t>(levels_at) * size_of(type)),
        row_bytes_(static_cast<std::uint32_t>(static_cast<std::size_t>(columns) * size_of(type))),
        type_(type) {}

  MELFLOW_HD Row at(std::uint32_t row) const {
    return {levels_ + static_cast<std::size_t>(row) * row_bytes_, type_};
  }

 private:
  std::byte* levels_ = nullptr;
  std::uint32_t row_bytes_ = 0;
  NumberType type_ = NumberType::float32;
};

}  // namespace melflow::cuda
