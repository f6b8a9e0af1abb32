// Texts one behind the other. The system moves large ones as they grow (realloc), so that there is
// never a second copy.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <memory>
#include <new>
#include <string_view>

namespace melflow {

class GrowingText {
 public:
  /// Has the empty text, which begins at 0.
  GrowingText() { add(""); }
  /// Appends a text, which is not one of these, and '\0'; returns where it begins. Pointers from
  /// at() become invalid. Throws std::bad_alloc.
  std::size_t add(std::string_view text) {
    if (size_ + text.size() + 1 > capacity_)
      resize(std::max(size_ + text.size() + 1, capacity_ + capacity_ / 2));
    *std::copy(text.begin(), text.end(), bytes_.get() + size_) = '\0';
    const std::size_t begin = size_;
    size_ += text.size() + 1;
    return begin;
  }
  [[nodiscard]] const char* at(std::size_t begin) const { return bytes_.get() + begin; }
  [[nodiscard]] std::size_t capacity() const { return capacity_; }
  void shrink_to_fit() { resize(size_); }

 private:
  struct Free {
    void operator()(char* bytes) const { std::free(bytes); }
  };
  void resize(std::size_t capacity) {
    auto* bytes =
        static_cast<char*>(std::realloc(bytes_.get(), std::max<std::size_t>(capacity, 1)));
    if (bytes == nullptr) throw std::bad_alloc();
    static_cast<void>(bytes_.release());  // realloc() has freed it
    bytes_.reset(bytes);
    capacity_ = capacity;
  }

  std::unique_ptr<char, Free> bytes_;
  std::size_t size_ = 0, capacity_ = 0;
};

}  // namespace melflow
