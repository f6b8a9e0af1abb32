// Every `new` of a program calls allocate(), which the program's test defines. For one file of a
// program.
#pragma once

#include <cstdlib>
#include <new>

namespace melflow::test {

/// Returns memory of malloc() or aligned_alloc(), or throws. `alignment` 0: that of malloc().
void* allocate(std::size_t size, std::size_t alignment);

/// Returns memory from the system, or throws std::bad_alloc.
inline void* allocate_from_system(std::size_t size, std::size_t alignment) {
  void* p = alignment == 0
                ? std::malloc(size)
                : std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
  if (p == nullptr) throw std::bad_alloc();
  return p;
}

}  // namespace melflow::test

void* operator new(std::size_t size) { return melflow::test::allocate(size, 0); }
void* operator new[](std::size_t size) { return melflow::test::allocate(size, 0); }
void* operator new(std::size_t size, std::align_val_t a) {
  return melflow::test::allocate(size, static_cast<std::size_t>(a));
}
void* operator new[](std::size_t size, std::align_val_t a) {
  return melflow::test::allocate(size, static_cast<std::size_t>(a));
}
void operator delete(void* p) noexcept { std::free(p); }
void operator delete[](void* p) noexcept { std::free(p); }
void operator delete(void* p, std::size_t) noexcept { std::free(p); }
void operator delete[](void* p, std::size_t) noexcept { std::free(p); }
void operator delete(void* p, std::align_val_t) noexcept { std::free(p); }
void operator delete[](void* p, std::align_val_t) noexcept { std::free(p); }
void operator delete(void* p, std::size_t, std::align_val_t) noexcept { std::free(p); }
void operator delete[](void* p, std::size_t, std::align_val_t) noexcept { std::free(p); }
