#include "pipeline/base/memory.h"

#include <sys/mman.h>

#include <bit>
#include <cstdlib>
#include <map>
#include <mutex>
#include <new>
#include <vector>

namespace melflow {
namespace {

constexpr std::size_t kSmallest = 4096;
// From this size on, memory is mapped and unmapped page by page, so that a freed large buffer
// leaves no hole in the heap that keeps the process large.
constexpr std::size_t kMapped = 256 * 1024;
// From this size on, large pages are used if the system allows them on request: touching a batch of
// 23 MiB first takes a dozen page faults instead of 5,800. It takes no more memory.
constexpr std::size_t kInLargePages = 4 << 20;

std::byte* allocate(std::size_t bytes) {
  if (bytes < kMapped) {
    void* p = std::aligned_alloc(64, bytes);
    if (p == nullptr) throw std::bad_alloc();
    return static_cast<std::byte*>(p);
  }
  void* p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (p == MAP_FAILED) throw std::bad_alloc();
  if (bytes >= kInLargePages) madvise(p, bytes, MADV_HUGEPAGE);  // a request; may be refused
  return static_cast<std::byte*>(p);
}

void deallocate(std::byte* p, std::size_t bytes) {
  if (bytes < kMapped)
    std::free(p);
  else
    munmap(p, bytes);
}

}  // namespace

struct Buffer::State {
  explicit State(std::size_t limit_bytes) : limit(limit_bytes) {}
  ~State() {
    for (auto& [size, list] : free)
      for (std::byte* p : list) deallocate(p, size);
  }

  std::mutex mutex;
  const std::size_t limit;
  std::size_t leased = 0;
  std::size_t kept = 0;
  std::size_t allocations = 0;
  std::map<std::size_t, std::vector<std::byte*>>
      free;  // by capacity, the last one returned at the back
};

void Buffer::swap(Buffer& other) noexcept {
  std::swap(home_, other.home_);
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  std::swap(capacity_, other.capacity_);
}

Buffer::~Buffer() {
  if (data_ == nullptr) return;
  {
    const std::lock_guard lock(home_->mutex);
    home_->leased -= capacity_;
    if (home_->leased + home_->kept + capacity_ <= home_->limit) {
      home_->free[capacity_].push_back(data_);
      home_->kept += capacity_;
      return;
    }
  }
  deallocate(data_, capacity_);
}

BufferPool::BufferPool(std::size_t limit) : state_(std::make_shared<Buffer::State>(limit)) {}

std::size_t BufferPool::rounded(std::size_t bytes) {
  if (bytes <= kSmallest) return kSmallest;
  // There are four sizes between two powers of two.
  const std::size_t step = std::bit_floor(bytes - 1) / 4;
  return (bytes + step - 1) / step * step;
}

Buffer BufferPool::lease(std::size_t bytes) {
  Buffer b;
  b.size_ = bytes;
  b.capacity_ = rounded(bytes);
  std::vector<std::pair<std::byte*, std::size_t>> surplus;
  {
    const std::lock_guard lock(state_->mutex);
    auto& list = state_->free[b.capacity_];
    if (!list.empty()) {
      b.data_ = list.back();
      list.pop_back();
      state_->kept -= b.capacity_;
    } else {
      ++state_->allocations;
      // Makes room under the limit: frees kept memory of other sizes, largest first.
      for (auto it = state_->free.rbegin();
           it != state_->free.rend() &&
           state_->leased + state_->kept + b.capacity_ > state_->limit;) {
        if (it->second.empty()) {
          ++it;
          continue;
        }
        surplus.emplace_back(it->second.back(), it->first);
        it->second.pop_back();
        state_->kept -= it->first;
      }
    }
    state_->leased += b.capacity_;
  }
  for (const auto& [p, size] : surplus) deallocate(p, size);
  b.home_ = state_;
  if (b.data_ == nullptr) {
    try {
      b.data_ = allocate(b.capacity_);
    } catch (...) {
      const std::lock_guard lock(state_->mutex);
      state_->leased -= b.capacity_;
      throw;
    }
  }
  return b;
}

std::size_t BufferPool::leased() const {
  const std::lock_guard lock(state_->mutex);
  return state_->leased;
}

std::size_t BufferPool::kept() const {
  const std::lock_guard lock(state_->mutex);
  return state_->kept;
}

std::size_t BufferPool::allocations() const {
  const std::lock_guard lock(state_->mutex);
  return state_->allocations;
}

}  // namespace melflow
