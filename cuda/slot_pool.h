// slot_pool.h - the slots of all devices of a run, and their allocation to callers.

#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "cuda/slot_device.h"

namespace melflow::cuda {

// Threads: any; times() and times_of_devices() when nothing is in flight.
// Lifetime: outlives its leases.
// Locks: its own, and under it those of the devices' state.
class SlotPool {
 public:
  // Takes at least one device; the slots of all have this size.
  SlotPool(std::vector<std::unique_ptr<SlotDevice>> devices, const SlotSize& size);
  // Opens devices one after another and allocates memory for batches of the given size. Throws
  // std::runtime_error with the memory needed, the memory available and the options to lower.
  SlotPool(Gpus& gpus, const std::shared_ptr<const FrontEnd>& front_end,
           const SlotSettings& settings, std::size_t sample_bytes, std::uint32_t frames);
  SlotPool(const SlotPool&) = delete;
  SlotPool& operator=(const SlotPool&) = delete;
  ~SlotPool();

  // Returns a slot without work in flight: of the working device with the fewest batches, the slot
  // that has been free for longest. Waits while all are taken; callers are served in order. `on`:
  // only these devices, by index, as long as one of them works; empty: any. Throws CudaError if no
  // device works any more.
  using Lease = std::shared_ptr<Slot>;
  [[nodiscard]] Lease take(std::span<const int> on = {});

  // The largest batch of a slot.
  [[nodiscard]] const SlotSize& size() const { return size_; }
  [[nodiscard]] std::size_t count() const;
  // The size of the rows of `frames` frames. [bytes]
  [[nodiscard]] std::size_t row_bytes(std::uint32_t frames) const;
  [[nodiscard]] std::vector<GpuInfo> devices() const;
  [[nodiscard]] std::string description() const { return devices_.front()->description(); }
  // The work of each device, in the order of devices(), without batches that were in flight when it
  // went out. Called when nothing is in flight.
  [[nodiscard]] std::vector<SlotTimes> times_of_devices() noexcept;
  // The sum of times_of_devices().
  [[nodiscard]] SlotTimes times() noexcept;
  // Why devices went out, in the order of devices().
  [[nodiscard]] std::vector<std::string> failures() const;

 private:
  struct Waiter {
    std::span<const int> on;
    Slot* slot = nullptr;
  };
  [[nodiscard]] bool may_take(const SlotDevice& device, std::span<const int> on) const;
  [[nodiscard]] bool has_any(std::span<const int> on) const;
  // Returns null if all are taken; called with the lock held.
  Slot* pick(std::span<const int> on);
  // Assigns free slots to waiting callers; called with the lock held.
  void deal();
  void give_back(Slot* slot);

  const SlotSize size_;
  std::vector<std::unique_ptr<SlotDevice>> devices_;
  mutable std::mutex mutex_;
  std::condition_variable dealt_;
  std::list<Waiter*> waiters_;  // oldest first
  std::uint64_t leases_ = 0;
};

}  // namespace melflow::cuda
