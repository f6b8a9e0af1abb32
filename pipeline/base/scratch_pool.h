// Keeps threads' work space between items: as many pieces as were in use at once.
#pragma once

#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace melflow {

/// All functions may be called from any thread.
template <class T>
class ScratchPool {
 public:
  /// Holds a piece of work space; must not outlive the pool.
  class Lease {
   public:
    Lease(ScratchPool& pool, std::unique_ptr<T> piece) : pool_(pool), piece_(std::move(piece)) {}
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;
    ~Lease() {
      const std::lock_guard lock(pool_.mutex_);
      pool_.free_.push_back(std::move(piece_));
    }
    T& operator*() const { return *piece_; }

   private:
    ScratchPool& pool_;
    std::unique_ptr<T> piece_;
  };

  /// Leases a piece that was returned, or a new one from make(), which returns std::unique_ptr<T>.
  template <class Make>
  [[nodiscard]] Lease lease(const Make& make) {
    {
      const std::lock_guard lock(mutex_);
      if (!free_.empty()) {
        std::unique_ptr<T> piece = std::move(free_.back());
        free_.pop_back();
        return {*this, std::move(piece)};
      }
    }
    return {*this, make()};
  }

 private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<T>> free_;
};

}  // namespace melflow
