// device_budget.h - limits the page-locked and device memory of a run, all of its nodes together.
// memory.pinned is for all devices, memory.device for each.

#pragma once

#include <cstddef>
#include <map>
#include <mutex>

namespace melflow::cuda {

class DeviceBudget {
 public:
  DeviceBudget(std::size_t pinned_limit, std::size_t device_limit)
      : pinned_limit_(pinned_limit), device_limit_(device_limit) {}
  DeviceBudget(const DeviceBudget&) = delete;
  DeviceBudget& operator=(const DeviceBudget&) = delete;

  // Charges memory that is about to be taken, `device` bytes of it on the device with this index.
  // Throws CudaError, and charges nothing, if that exceeds the limit. [bytes]
  void charge(int index, std::size_t pinned, std::size_t device);
  // Page-locked memory that is still available. [bytes]
  [[nodiscard]] std::size_t pinned_left() const;
  // Undoes charge() once that memory is released. [bytes]
  void refund(int index, std::size_t pinned, std::size_t device) noexcept;

 private:
  const std::size_t pinned_limit_, device_limit_;
  mutable std::mutex mutex_;
  std::size_t pinned_ = 0;
  std::map<int, std::size_t> on_device_;  // by index
};

}  // namespace melflow::cuda
