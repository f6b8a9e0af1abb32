// Arrays of samples from Python.
#pragma once

#include <stdexcept>

#include "apps/python/arrays.h"
#include "stages/items.h"

namespace melflow {

using SampleArray = nb::ndarray<nb::ro, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

/// The samples of an array, whose memory they are.
template <class Array>
Samples samples_of(const Array& array) {
  Samples out;
  out.data = static_cast<const std::byte*>(array.data());
  out.count = static_cast<std::int64_t>(array.shape(array.ndim() - 1));
  if (array.dtype() == nb::dtype<std::int16_t>())
    out.type = SampleType::int16;
  else if (array.dtype() == nb::dtype<float>())
    out.type = SampleType::float32;
  else
    throw std::invalid_argument("samples are float32 (1 is full scale) or int16");
  return out;
}

}  // namespace melflow
