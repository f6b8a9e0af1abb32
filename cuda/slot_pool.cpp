#include "cuda/slot_pool.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "cuda/error.h"

namespace melflow::cuda {
namespace {

// Keeps devices that hang until the program ends: their driver may access their slots at any time,
// and a call to it may never return.
void keep_for_ever(std::unique_ptr<SlotDevice> device) {
  static std::mutex mutex;
  static auto* const all = new std::vector<std::unique_ptr<SlotDevice>>;
  const std::lock_guard lock(mutex);
  all->push_back(std::move(device));
}

std::vector<std::unique_ptr<SlotDevice>> open(Gpus& gpus,
                                              const std::shared_ptr<const FrontEnd>& front_end,
                                              SlotSettings settings, const SlotSize& size) {
  if (settings.devices.empty()) throw std::invalid_argument("no device is named");
  settings.slots = slots_of_each(settings, *front_end, size);
  std::vector<std::unique_ptr<SlotDevice>> out;
  for (const int index : settings.devices)
    out.push_back(std::make_unique<SlotDevice>(gpus, index, settings, front_end, size));
  return out;
}

}  // namespace

SlotPool::SlotPool(std::vector<std::unique_ptr<SlotDevice>> devices, const SlotSize& size)
    : size_(size), devices_(std::move(devices)) {
  for (const auto& device : devices_) {
    device->when_out([this] {
      const std::lock_guard lock(mutex_);
      deal();
    });
  }
}

SlotPool::SlotPool(Gpus& gpus, const std::shared_ptr<const FrontEnd>& front_end,
                   const SlotSettings& settings, std::size_t sample_bytes, std::uint32_t frames)
    : SlotPool(open(gpus, front_end, settings, {sample_bytes, frames}), {sample_bytes, frames}) {}

SlotPool::~SlotPool() {
  for (auto& device : devices_) {
    device->when_out({});
    if (device->hangs()) keep_for_ever(std::move(device));
  }
}

bool SlotPool::may_take(const SlotDevice& device, std::span<const int> on) const {
  return !device.is_out() &&
         (on.empty() || std::find(on.begin(), on.end(), device.info().index) != on.end());
}

bool SlotPool::has_any(std::span<const int> on) const {
  return std::any_of(devices_.begin(), devices_.end(),
                     [&](const auto& d) { return may_take(*d, on); });
}

Slot* SlotPool::pick(std::span<const int> on) {
  if (!has_any(on)) on = {};
  SlotDevice* best = nullptr;
  for (const auto& d : devices_) {
    if (!may_take(*d, on) || d->free.empty()) continue;
    if (best == nullptr || d->taken < best->taken ||
        (d->taken == best->taken && d->last_taken < best->last_taken))
      best = d.get();
  }
  if (best == nullptr) return nullptr;
  Slot* slot = best->free.front();
  best->free.pop_front();
  ++best->taken;
  best->last_taken = ++leases_;
  return slot;
}

void SlotPool::deal() {
  for (Waiter* waiter : waiters_)
    if (waiter->slot == nullptr) waiter->slot = pick(waiter->on);
  dealt_.notify_all();
}

SlotPool::Lease SlotPool::take(std::span<const int> on) {
  std::unique_lock lock(mutex_);
  Waiter self{on};
  waiters_.push_back(&self);
  deal();
  dealt_.wait(lock, [&] { return self.slot != nullptr || !has_any({}); });
  waiters_.remove(&self);
  if (self.slot == nullptr) {
    std::string why;
    for (const auto& d : devices_) why += "; " + d->why();
    throw CudaError("no device works any more" + why);
  }
  return {self.slot, [this](Slot* done) { give_back(done); }};
}

void SlotPool::give_back(Slot* slot) {
  const std::lock_guard lock(mutex_);
  for (const auto& d : devices_) {
    if (&slot->owner() != d.get()) continue;
    --d->taken;
    d->free.push_back(slot);
  }
  deal();
}

std::size_t SlotPool::count() const {
  std::size_t n = 0;
  for (const auto& d : devices_) n += d->slots().size();
  return n;
}

std::size_t SlotPool::row_bytes(std::uint32_t frames) const {
  return devices_.front()->row_bytes(frames);
}

std::vector<GpuInfo> SlotPool::devices() const {
  std::vector<GpuInfo> out;
  for (const auto& d : devices_) out.push_back(d->info());
  return out;
}

std::vector<SlotTimes> SlotPool::times_of_devices() noexcept {
  std::vector<SlotTimes> out;
  for (const auto& d : devices_) out.push_back(d->times());
  return out;
}

SlotTimes SlotPool::times() noexcept {
  SlotTimes sum;
  for (const SlotTimes& t : times_of_devices()) sum += t;
  return sum;
}

std::vector<std::string> SlotPool::failures() const {
  std::vector<std::string> out;
  for (const auto& d : devices_)
    if (d->is_out()) out.push_back(d->why());
  return out;
}

}  // namespace melflow::cuda
