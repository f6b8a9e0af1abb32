// XXH3 (64 bits) of bytes that come piece by piece.
#pragma once

#include <xxhash.h>

#include <cstddef>
#include <cstdint>
#include <memory>

namespace melflow {

class ByteHash {
 public:
  /// Throws std::bad_alloc.
  ByteHash();
  void reset() { XXH3_64bits_reset(state_.get()); }
  void add(const void* data, std::size_t bytes);
  [[nodiscard]] std::uint64_t value() const { return XXH3_64bits_digest(state_.get()); }

  static std::uint64_t of(const void* data, std::size_t bytes);

 private:
  struct Free {
    void operator()(XXH3_state_t* state) const { XXH3_freeState(state); }
  };
  std::unique_ptr<XXH3_state_t, Free> state_;
};

}  // namespace melflow
