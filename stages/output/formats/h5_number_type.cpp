#include "stages/output/formats/h5_number_type.h"

#include <stdexcept>

namespace melflow {
namespace {

// Makes a type of two bytes: sign, exponent, mantissa.
Hid sixteen_bits(std::size_t exponent_bits, std::size_t bias, const char* name) {
  Hid id(H5Tcopy(H5T_IEEE_F32LE), H5Tclose, "type");
  const std::size_t mantissa_bits = 15 - exponent_bits;
  h5_check(H5Tset_fields(id, 15, mantissa_bits, exponent_bits, 0, mantissa_bits), name);
  h5_check(H5Tset_size(id, 2), name);
  h5_check(H5Tset_ebias(id, bias), name);
  return id;
}

Hid status_type() {
  Hid type(H5Tenum_create(H5T_STD_I8LE), H5Tclose, "status type");
  for (std::int8_t value = 0; const char* name : FeatureData::kStatusNames) {
    h5_check(H5Tenum_insert(type, name, &value), name);
    ++value;
  }
  return type;
}

Hid text_type() {
  Hid type(H5Tcopy(H5T_C_S1), H5Tclose, "string type");
  h5_check(H5Tset_size(type, H5T_VARIABLE), "string type");
  h5_check(H5Tset_cset(type, H5T_CSET_UTF8), "string type");
  return type;
}

}  // namespace

Hid h5_number_type(NumberType type) {
  const auto plain = [](hid_t id) { return Hid(H5Tcopy(id), H5Tclose, "type"); };
  switch (type) {
    case NumberType::float32:
      return plain(H5T_IEEE_F32LE);
    case NumberType::float16:
      return sixteen_bits(5, 15, "float16");
    case NumberType::bfloat16:
      return sixteen_bits(8, 127, "bfloat16");
    case NumberType::int16:
      return plain(H5T_STD_I16LE);
    case NumberType::int8:
      return plain(H5T_STD_I8LE);
    case NumberType::uint8:
      return plain(H5T_STD_U8LE);
    case NumberType::uint16:
      return plain(H5T_STD_U16LE);
    case NumberType::int32:
      return plain(H5T_STD_I32LE);
    case NumberType::int64:
      return plain(H5T_STD_I64LE);
  }
  throw std::logic_error("a number type that HDF5 does not have");
}

Hid h5_type(ColumnType type) {
  if (type == ColumnType::status) return status_type();
  if (type == ColumnType::text) return text_type();
  const hid_t numbers[] = {H5T_STD_I8LE,  H5T_STD_U8LE,   H5T_STD_I32LE, H5T_STD_I64LE,
                           H5T_STD_U64LE, H5T_IEEE_F32LE, H5T_IEEE_F64LE};
  return {H5Tcopy(numbers[static_cast<std::size_t>(type)]), H5Tclose, "type"};
}

std::optional<NumberType> number_type_of(hid_t type) {
  for (const NumberType t : kNumberTypes)
    if (H5Tequal(type, h5_number_type(t)) > 0) return t;
  return std::nullopt;
}

}  // namespace melflow
