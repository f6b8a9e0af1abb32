#include "pipeline/stage/budget.h"

#include <algorithm>
#include <utility>

namespace melflow {

MemoryBudget::MemoryBudget(std::size_t capacity, std::size_t reserve, std::size_t for_parts)
    : capacity_(capacity),
      reserve_(std::min(reserve, capacity)),
      for_parts_(std::min(for_parts, reserve_)) {}

bool MemoryBudget::acquire(Reservation& holder, std::size_t bytes, Claim claim,
                           std::size_t others) {
  const std::lock_guard lock(mutex_);
  const std::size_t room = claim == Claim::oldest_part ? capacity_
                           : claim == Claim::oldest_item
                               ? capacity_ - std::min(for_parts_ + others, reserve_)
                               : capacity_ - reserve_;
  if (bytes > room || used_ > room - bytes) {
    is_wanted_ = true;
    return false;
  }
  used_ += bytes;
  peak_ = std::max(peak_, used_);
  acquired_ += bytes;
  ++acquisitions_;
  holder.bytes_ = bytes;
  holder.is_listed_ = true;
  holder.next_ = first_;
  if (first_ != nullptr) first_->previous_ = &holder;
  first_ = &holder;
  return true;
}

void MemoryBudget::release(std::size_t bytes, Reservation* gone) {
  {
    const std::lock_guard lock(mutex_);
    if (gone != nullptr) {
      (gone->previous_ != nullptr ? gone->previous_->next_ : first_) = gone->next_;
      if (gone->next_ != nullptr) gone->next_->previous_ = gone->previous_;
    }
    used_ -= bytes;
    if (!is_wanted_ || !on_release_) return;
    is_wanted_ = false;
    ++telling_;
  }
  on_release_();
  const std::lock_guard lock(mutex_);
  if (--telling_ == 0) told_.notify_all();
}

void MemoryBudget::on_release(std::function<void()> callback) {
  std::unique_lock lock(mutex_);
  told_.wait(lock, [this] { return telling_ == 0; });
  on_release_ = std::move(callback);
}

std::size_t MemoryBudget::used() const {
  const std::lock_guard lock(mutex_);
  return used_;
}

std::size_t MemoryBudget::peak() const {
  const std::lock_guard lock(mutex_);
  return peak_;
}

std::size_t MemoryBudget::mean() const {
  const std::lock_guard lock(mutex_);
  return acquisitions_ > 0 ? acquired_ / acquisitions_ : 0;
}

void MemoryBudget::add_holders(std::vector<double>& bytes) const {
  const std::lock_guard lock(mutex_);
  for (const Reservation* r = first_; r != nullptr; r = r->next_)
    bytes[static_cast<std::size_t>(r->node())] += static_cast<double>(r->bytes_.load());
}

Reservation::~Reservation() {
  if (is_listed_) budget_.release(bytes_, this);
}

void Reservation::shrink(std::size_t bytes) const {
  const std::size_t before = bytes_.load();
  if (bytes >= before) return;
  bytes_.store(bytes);
  budget_.release(before - bytes, nullptr);
}

std::shared_ptr<const Reservation> Reservation::try_make(MemoryBudget& budget, std::size_t bytes,
                                                         Claim claim, std::size_t others) {
  // Made before it takes any bytes, so that none have to be given back if making it throws.
  auto made = std::make_shared<Reservation>(budget);
  if (!budget.acquire(*made, bytes, claim, others)) return nullptr;
  return made;
}

}  // namespace melflow
