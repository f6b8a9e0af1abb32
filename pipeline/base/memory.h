// Reusable host memory. Buffers are leased from a pool and return to it when they go out of scope.
// Among those of one size that a thread returned, the last is leased first: its bytes are still in
// cache.
#pragma once

#include <cstddef>
#include <span>
#include <utility>

namespace melflow {

class BufferPool;

/// A leased piece of memory, aligned to 64 bytes, contents undefined. Move-only; returns the memory
/// on destruction, even if the pool object itself no longer exists. Or a view of memory that a
/// caller keeps.
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
  /// A view, for readers alone; `memory` must stay valid as long as it.
  static Buffer over(std::span<const std::byte> memory);

  [[nodiscard]] std::byte* data() const { return data_; }
  /// The size that was requested [bytes]; the memory may be larger.
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

  State* home_ = nullptr;  // null: of a view
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
  std::size_t capacity_ = 0;
};

class BufferPool {
 public:
  /// Leased plus kept memory stays below `limit` [bytes] as long as the leased memory alone does.
  explicit BufferPool(std::size_t limit);
  BufferPool(const BufferPool&) = delete;
  BufferPool& operator=(const BufferPool&) = delete;
  ~BufferPool();

  /// Throws std::bad_alloc if the system has no memory left.
  [[nodiscard]] Buffer lease(std::size_t bytes);

  /// The memory that a lease of `bytes` really takes: at most a quarter more, at least 4 KiB.
  static std::size_t rounded(std::size_t bytes);

  [[nodiscard]] std::size_t leased() const;
  [[nodiscard]] std::size_t kept() const;
  /// How often memory was taken from the system; constant in the steady state.
  [[nodiscard]] std::size_t allocations() const;

 private:
  Buffer::State* const state_;
};

}  // namespace melflow
