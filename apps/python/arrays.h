// NumPy arrays that own their data.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "pipeline/base/number_type.h"

namespace melflow {

namespace nb = nanobind;

inline nb::dlpack::dtype dtype_of(NumberType type) {
  using Code = nb::dlpack::dtype_code;
  const auto bits = static_cast<std::uint8_t>(8 * size_of(type));
  switch (type) {
    case NumberType::float32:
      return {static_cast<std::uint8_t>(Code::Float), 32, 1};
    case NumberType::float16:
      return {static_cast<std::uint8_t>(Code::Float), 16, 1};
    case NumberType::bfloat16:
      return {static_cast<std::uint8_t>(Code::Bfloat), 16, 1};
    case NumberType::uint8:
    case NumberType::uint16:
      return {static_cast<std::uint8_t>(Code::UInt), bits, 1};
    case NumberType::int8:
    case NumberType::int16:
    case NumberType::int32:
    case NumberType::int64:
      break;
  }
  return {static_cast<std::uint8_t>(Code::Int), bits, 1};
}

/// Makes an array that owns its data.
template <class Owner>
nb::object array(std::unique_ptr<Owner> owner, void* data, const std::vector<std::size_t>& shape,
                 nb::dlpack::dtype type) {
  const nb::capsule keeper(owner.release(),
                           [](void* p) noexcept { delete static_cast<Owner*>(p); });
  // NumPy has no bfloat16, so such arrays are passed by DLPack.
  if (type.code == static_cast<std::uint8_t>(nb::dlpack::dtype_code::Bfloat))
    return nb::cast(
        nb::ndarray<nb::array_api>(data, shape.size(), shape.data(), keeper, nullptr, type));
  return nb::cast(nb::ndarray<nb::numpy>(data, shape.size(), shape.data(), keeper, nullptr, type));
}

template <class T>
nb::object array(std::vector<T> values, std::vector<std::size_t> shape = {}) {
  if (shape.empty()) shape = {values.size()};
  auto owner = std::make_unique<std::vector<T>>(std::move(values));
  void* data = owner->data();
  return array(std::move(owner), data, shape, nb::dtype<T>());
}

/// An array from Python, and a function that copies it.
using Numbers = nb::ndarray<const std::int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
inline std::vector<std::int64_t> copy_of(const Numbers& numbers) {
  return {numbers.data(), numbers.data() + numbers.shape(0)};
}

}  // namespace melflow
