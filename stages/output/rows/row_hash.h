// XXH3 (64 bits) of a file's rows as they are stored, in order: an output has it of each file, to
// recognise the file's rows.
#pragma once

#include <xxhash.h>

#include <cstddef>
#include <cstdint>
#include <memory>

#include "pipeline/base/number_type.h"

namespace melflow {

class RowHash {
 public:
  RowHash() { reset(); }
  void reset() { XXH3_64bits_reset(state_.get()); }
  void add(const void* data, std::size_t bytes);
  /// Adds `count` values of type `type`, which is `stored` or float32, as they are stored.
  void add(const void* values, std::size_t count, NumberType type, NumberType stored);
  [[nodiscard]] std::uint64_t value() const { return XXH3_64bits_digest(state_.get()); }

  /// Returns the hash of `count` values, as above.
  static std::uint64_t of(const void* values, std::size_t count, NumberType type,
                          NumberType stored);

 private:
  struct Free {
    void operator()(XXH3_state_t* state) const { XXH3_freeState(state); }
  };
  std::unique_ptr<XXH3_state_t, Free> state_{XXH3_createState()};
};

}  // namespace melflow
