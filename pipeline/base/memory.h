// Reusable host memory. Buffers are leased from a pool and come back when they go out of scope; of
// each size, the buffer returned last is leased first, while its bytes are still in cache.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

namespace melflow {

class BufferPool;

/// A leased piece of memory, aligned to 64 bytes, contents undefined. Move-only; gives the memory
/// back on destruction, also when the pool object itself is already gone.
class Buffer {
 public:
  Buffer() = default;
  Buffer(Buffer&& other) noexcept { swap(other); }
  Buffer& operator=(Buffer&& other) noexcept {
    Buffer taken(std::move(other));
    swap(taken);
    return *this;
  }
  ~Buffer();

  [[nodiscard]] std::byte* data() const { return data_; }
  /// The size that was asked for [bytes]; the memory may be larger.
  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] std::size_t capacity() const { return capacity_; }
  explicit operator bool() const { return data_ != nullptr; }

  template <class T>
  [[nodiscard]] T* as() const {
    return reinterpret_cast<T*>(data_);
  }

 private:
  friend class BufferPool;
  struct State;
  void swap(Buffer& other) noexcept;

  std::shared_ptr<State> home_;
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
  std::size_t capacity_ = 0;
};

class BufferPool {
 public:
  /// `limit`: leased plus kept memory stays below it as long as what is leased alone does [bytes].
  explicit BufferPool(std::size_t limit);

  /// Throws std::bad_alloc when the system has no memory left.
  [[nodiscard]] Buffer lease(std::size_t bytes);

  /// The memory that a lease of `bytes` really takes: at most a quarter more, at least 4 KiB.
  static std::size_t rounded(std::size_t bytes);

  [[nodiscard]] std::size_t leased() const;
  [[nodiscard]] std::size_t kept() const;
  /// How often memory had to be taken from the system; constant in the steady state.
  [[nodiscard]] std::size_t allocations() const;

 private:
  std::shared_ptr<Buffer::State> state_;
};

}  // namespace melflow
