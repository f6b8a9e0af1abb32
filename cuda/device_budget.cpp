#include "cuda/device_budget.h"

#include <fmt/format.h>

#include <algorithm>

#include "cuda/error.h"

namespace melflow::cuda {
namespace {

void check(const char* kind, std::size_t wanted, std::size_t used, std::size_t limit) {
  if (wanted <= limit && used <= limit - wanted) return;
  const auto mib = [](std::size_t bytes) { return static_cast<double>(bytes) / (1 << 20); };
  throw CudaError(fmt::format(
      "memory.{}: a batch on the device needs {:.1f} MiB, {:.1f} of {:.1f} MiB are taken by the "
      "mel nodes of this run; allow more, or lower mel.accumulate.bytes or mel.slots",
      kind, mib(wanted), mib(used), mib(limit)));
}

}  // namespace

void DeviceBudget::charge(int index, std::size_t pinned, std::size_t device) {
  const std::lock_guard lock(mutex_);
  std::size_t& on = on_device_[index];
  check("pinned", pinned, pinned_, pinned_limit_);
  check("device", device, on, device_limit_);
  pinned_ += pinned;
  on += device;
}

std::size_t DeviceBudget::pinned_left() const {
  const std::lock_guard lock(mutex_);
  return pinned_limit_ - std::min(pinned_limit_, pinned_);
}

void DeviceBudget::refund(int index, std::size_t pinned, std::size_t device) noexcept {
  const std::lock_guard lock(mutex_);
  pinned_ -= pinned;
  const auto on = on_device_.find(index);
  if (on != on_device_.end()) on->second -= device;
}

}  // namespace melflow::cuda
