// The types of the values stored beside the rows, little-endian in every format.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>

#include "stages/output/formats/feature_data.h"

namespace melflow {

static_assert(std::endian::native == std::endian::little, "numbers are written as they are");

/// `status` is an int8 whose numbers have names; a text has as many bytes as it needs, none of them
/// zero.
enum class ColumnType { int8, uint8, int32, int64, uint64, float32, float64, status, text };

/// The size of a value [bytes]; 1 for a text, which is counted in bytes.
constexpr std::size_t size_of(ColumnType type) {
  constexpr std::size_t kBytes[] = {1, 1, 4, 8, 8, 4, 8, 1, 1};
  return kBytes[static_cast<std::size_t>(type)];
}
/// The type's name in numpy, such as "<i4"; "|S" for a text, without its length.
constexpr const char* numpy_name(ColumnType type) {
  constexpr const char* kNames[] = {"|i1", "|u1", "<i4", "<i8", "<u8", "<f4", "<f8", "|i1", "|S"};
  return kNames[static_cast<std::size_t>(type)];
}

template <class T>
constexpr ColumnType column_type() {
  if constexpr (std::is_same_v<T, std::string>) return ColumnType::text;
  if constexpr (std::is_same_v<T, FeatureData::Status>) return ColumnType::status;
  if constexpr (std::is_same_v<T, double>) return ColumnType::float64;
  if constexpr (std::is_same_v<T, float>) return ColumnType::float32;
  if constexpr (std::is_same_v<T, std::uint64_t>) return ColumnType::uint64;
  if constexpr (std::is_same_v<T, std::int64_t>) return ColumnType::int64;
  if constexpr (std::is_same_v<T, std::int32_t>) return ColumnType::int32;
  if constexpr (std::is_same_v<T, std::uint8_t>) return ColumnType::uint8;
  if constexpr (std::is_same_v<T, std::int8_t>) return ColumnType::int8;
}

/// Writes the bytes of a number to `to`.
template <class T>
void put_bytes(char* to, T value) {
  static_assert(std::is_trivially_copyable_v<T>);
  std::memcpy(to, &value, sizeof value);
}

}  // namespace melflow
