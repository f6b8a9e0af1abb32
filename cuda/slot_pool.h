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

class SlotPool {
 public:
  // At least one device; slots of all of them are of this size.
  SlotPool(std::vector<std::unique_ptr<SlotDevice>> devices, const SlotSize& size);
  // Opens devices one after another and takes memory for batches of this size: `sample_bytes`,
  // `frames`. Throws std::runtime_error that says what was needed, what there is and what to lower.
  SlotPool(Gpus& gpus, const std::shared_ptr<const FrontEnd>& front_end,
           const SlotSettings& settings, std::size_t sample_bytes, std::uint32_t frames);
  SlotPool(const SlotPool&) = delete;
  SlotPool& operator=(const SlotPool&) = delete;
  ~SlotPool();

  // A slot that nothing is under way in: of the device that works and has the fewest batches, the
  // one that has been free for longest. Waits while all are taken; callers are served in the order
  // in which they asked. `on`: of these devices, by index, as long as one of them works; empty: of
  // any. Throws CudaError when no device works any more.
  using Lease = std::shared_ptr<Slot>;
  [[nodiscard]] Lease take(std::span<const int> on = {});

  // The largest batch of a slot.
  [[nodiscard]] const SlotSize& size() const { return size_; }
  [[nodiscard]] std::size_t count() const;
  // What the rows of so many frames take. [bytes]
  [[nodiscard]] std::size_t row_bytes(std::uint32_t frames) const;
  [[nodiscard]] std::vector<GpuInfo> devices() const;
  [[nodiscard]] std::string description() const { return devices_.front()->description(); }
  // What each device did, in the order of devices(), without batches that were under way when it
  // went out. To be called when nothing is under way.
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
  // With the lock held: null where all are taken.
  Slot* pick(std::span<const int> on);
  // With the lock held: gives free slots to waiting callers.
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
