#include "pipeline/base/memory.h"

#include <sys/mman.h>
#include <tbb/spin_mutex.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstdlib>
#include <map>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

#include "pipeline/base/threads.h"

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

// Each piece of memory is leased, on a shelf or in a free list. A thread puts what it returns on
// its shelf and leases from there, so that threads share no lock as long as the shelf has room and
// the size; a shelf counts as leased in the totals, which need the common lock. No size is taken
// from the system while any shelf has it.
//
// Lock order: `mutex`, then one shelf's.
struct Buffer::State {
  struct Piece {
    std::byte* data = nullptr;
    std::size_t size = 0;
  };
  // Threads share one only if there are more threads than shelves.
  struct alignas(64) Shelf {
    mutable tbb::spin_mutex mutex;
    std::array<Piece, 8> pieces;  // the last one returned at the end
    std::size_t count = 0, bytes = 0;
    bool is_closed = false;
  };
  explicit State(std::size_t limit_bytes)
      : limit(limit_bytes), shelf_limit(std::min(limit / 32, std::size_t{2} << 20)) {}

  Shelf& own_shelf() { return shelves[thread_number() % shelves.size()]; }
  std::byte* take(Shelf& shelf, std::size_t size);
  bool put(Shelf& shelf, std::byte* data, std::size_t size) const;
  void make_room(std::size_t bytes, std::vector<Piece>& surplus);
  [[nodiscard]] std::size_t on_shelves() const;
  void drop(std::byte* data, std::size_t size) {
    deallocate(data, size);
    release();
  }
  void release() {
    if (owners.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
  }

  const std::size_t limit, shelf_limit;
  std::atomic<std::size_t> owners{1};  // the pool, and each piece of memory
  std::array<Shelf, 16> shelves;

  mutable std::mutex mutex;  // of all below
  bool is_closed = false;    // the pool is gone
  std::size_t leased = 0;    // with what is on shelves [bytes]
  std::size_t kept = 0;
  std::size_t allocations = 0;
  std::map<std::size_t, std::vector<std::byte*>> free;  // by size, the last one returned at the end
};

// Null where the shelf has none of that size.
std::byte* Buffer::State::take(Shelf& shelf, std::size_t size) {
  const tbb::spin_mutex::scoped_lock lock(shelf.mutex);
  for (std::size_t i = shelf.count; i-- > 0;) {
    if (shelf.pieces[i].size != size) continue;
    std::byte* const data = shelf.pieces[i].data;
    std::move(shelf.pieces.begin() + static_cast<std::ptrdiff_t>(i) + 1,
              shelf.pieces.begin() + static_cast<std::ptrdiff_t>(shelf.count),
              shelf.pieces.begin() + static_cast<std::ptrdiff_t>(i));
    --shelf.count;
    shelf.bytes -= size;
    return data;
  }
  return nullptr;
}

bool Buffer::State::put(Shelf& shelf, std::byte* data, std::size_t size) const {
  const tbb::spin_mutex::scoped_lock lock(shelf.mutex);
  if (shelf.is_closed || shelf.count == shelf.pieces.size() || shelf.bytes + size > shelf_limit)
    return false;
  shelf.pieces[shelf.count++] = {data, size};
  shelf.bytes += size;
  return true;
}

// Takes out of the pool the memory that it must not keep if `bytes` more are leased: first the
// largest pieces of the free lists, then shelves. Under the lock.
void Buffer::State::make_room(std::size_t bytes, std::vector<Piece>& surplus) {
  for (auto it = free.rbegin(); it != free.rend() && leased + kept + bytes > limit;) {
    if (it->second.empty()) {
      ++it;
      continue;
    }
    surplus.push_back({it->second.back(), it->first});
    it->second.pop_back();
    kept -= it->first;
  }
  for (Shelf& shelf : shelves) {
    if (leased + kept + bytes <= limit) return;
    const tbb::spin_mutex::scoped_lock lock(shelf.mutex);
    surplus.insert(surplus.end(), shelf.pieces.begin(),
                   shelf.pieces.begin() + static_cast<std::ptrdiff_t>(shelf.count));
    leased -= std::exchange(shelf.bytes, 0);
    shelf.count = 0;
  }
}

std::size_t Buffer::State::on_shelves() const {
  std::size_t bytes = 0;
  for (const Shelf& shelf : shelves) {
    const tbb::spin_mutex::scoped_lock lock(shelf.mutex);
    bytes += shelf.bytes;
  }
  return bytes;
}

void Buffer::swap(Buffer& other) noexcept {
  std::swap(home_, other.home_);
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  std::swap(capacity_, other.capacity_);
}

Buffer Buffer::over(std::span<const std::byte> memory) {
  Buffer view;
  view.data_ = const_cast<std::byte*>(memory.data());
  view.size_ = view.capacity_ = memory.size();
  return view;
}

Buffer::~Buffer() {
  if (home_ == nullptr || data_ == nullptr || home_->put(home_->own_shelf(), data_, capacity_))
    return;
  {
    const std::lock_guard lock(home_->mutex);
    home_->leased -= capacity_;
    if (!home_->is_closed && home_->leased + home_->kept + capacity_ <= home_->limit) {
      home_->free[capacity_].push_back(data_);
      home_->kept += capacity_;
      return;
    }
  }
  home_->drop(data_, capacity_);
}

BufferPool::BufferPool(std::size_t limit) : state_(new Buffer::State(limit)) {}

BufferPool::~BufferPool() {
  std::vector<Buffer::State::Piece> all;
  {
    const std::lock_guard lock(state_->mutex);
    state_->is_closed = true;
    for (const auto& [size, list] : state_->free)
      for (std::byte* data : list) all.push_back({data, size});
    state_->free.clear();
    for (Buffer::State::Shelf& shelf : state_->shelves) {
      const tbb::spin_mutex::scoped_lock lock_shelf(shelf.mutex);
      shelf.is_closed = true;
      all.insert(all.end(), shelf.pieces.begin(),
                 shelf.pieces.begin() + static_cast<std::ptrdiff_t>(shelf.count));
      shelf.count = 0;
    }
  }
  for (const auto& [data, size] : all) state_->drop(data, size);
  state_->release();
}

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
  b.home_ = state_;
  Buffer::State::Shelf& own = state_->own_shelf();
  if ((b.data_ = state_->take(own, b.capacity_)) != nullptr) return b;
  std::vector<Buffer::State::Piece> surplus;
  {
    const std::lock_guard lock(state_->mutex);
    auto& list = state_->free[b.capacity_];
    if (!list.empty()) {
      b.data_ = list.back();
      list.pop_back();
      state_->kept -= b.capacity_;
      state_->leased += b.capacity_;
      return b;
    }
    for (Buffer::State::Shelf& shelf : state_->shelves)
      if ((b.data_ = state_->take(shelf, b.capacity_)) != nullptr) return b;
    ++state_->allocations;
    state_->make_room(b.capacity_, surplus);
    state_->leased += b.capacity_;
  }
  for (const auto& [data, size] : surplus) state_->drop(data, size);
  try {
    b.data_ = allocate(b.capacity_);
  } catch (...) {
    const std::lock_guard lock(state_->mutex);
    state_->leased -= b.capacity_;
    throw;
  }
  state_->owners.fetch_add(1, std::memory_order_relaxed);
  return b;
}

std::size_t BufferPool::leased() const {
  const std::lock_guard lock(state_->mutex);
  return state_->leased - state_->on_shelves();
}

std::size_t BufferPool::kept() const {
  const std::lock_guard lock(state_->mutex);
  return state_->kept + state_->on_shelves();
}

std::size_t BufferPool::allocations() const {
  const std::lock_guard lock(state_->mutex);
  return state_->allocations;
}

}  // namespace melflow
