#include "stages/output/rows/row_hash.h"

#include <algorithm>
#include <array>

namespace melflow {

void RowHash::add(const void* values, std::size_t count, NumberType type, NumberType stored) {
  if (type == stored) return add(values, count * size_of(type));
  std::array<std::uint16_t, 4096> piece;
  for (const auto* from = static_cast<const float*>(values); count > 0;) {
    const std::size_t n = std::min(count, piece.size());
    from_float({from, n}, stored, piece.data());
    add(piece.data(), n * sizeof(std::uint16_t));
    from += n;
    count -= n;
  }
}

std::uint64_t RowHash::of(const void* values, std::size_t count, NumberType type,
                          NumberType stored) {
  if (type == stored) return ByteHash::of(values, count * size_of(type));
  RowHash hash;
  hash.add(values, count, type, stored);
  return hash.value();
}

}  // namespace melflow
