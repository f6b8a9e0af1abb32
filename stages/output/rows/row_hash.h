// XXH3 (64 bits) of a file's rows as they are stored, in order: an output has it of each file, to
// recognise the file's rows.
#pragma once

#include <cstddef>
#include <cstdint>

#include "pipeline/base/number_type.h"
#include "stages/files/byte_hash.h"

namespace melflow {

class RowHash {
 public:
  void reset() { hash_.reset(); }
  void add(const void* data, std::size_t bytes) { hash_.add(data, bytes); }
  /// Adds `count` values of type `type`, which is `stored` or float32, as they are stored.
  void add(const void* values, std::size_t count, NumberType type, NumberType stored);
  [[nodiscard]] std::uint64_t value() const { return hash_.value(); }

  /// Returns the hash of `count` values, as above.
  static std::uint64_t of(const void* values, std::size_t count, NumberType type,
                          NumberType stored);

 private:
  ByteHash hash_;
};

}  // namespace melflow
