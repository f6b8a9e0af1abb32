#include "cuda/lanes.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "cuda/error.h"

namespace melflow::cuda {
namespace {

// Devices that hang. Their driver may come back to their lanes at any time, and whoever calls it
// may never return: they stay as they are until the program ends.
void keep_for_ever(std::unique_ptr<LaneDevice> device) {
  static std::mutex mutex;
  static auto* const all = new std::vector<std::unique_ptr<LaneDevice>>;
  const std::lock_guard lock(mutex);
  all->push_back(std::move(device));
}

std::vector<std::unique_ptr<LaneDevice>> open(Gpus& gpus,
                                              const std::shared_ptr<const FrontEnd>& front_end,
                                              LaneSettings settings, const LaneSize& size) {
  if (settings.devices.empty()) throw std::invalid_argument("no device is named");
  settings.streams = lanes_of_each(settings, *front_end, size);
  std::vector<std::unique_ptr<LaneDevice>> out;
  for (const int index : settings.devices)
    out.push_back(std::make_unique<LaneDevice>(gpus, index, settings, front_end, size));
  return out;
}

}  // namespace

Lanes::Lanes(std::vector<std::unique_ptr<LaneDevice>> devices, const LaneSize& size)
    : size_(size), devices_(std::move(devices)) {
  for (const auto& device : devices_) {
    device->when_out([this] {
      const std::lock_guard lock(mutex_);
      deal();
    });
  }
}

Lanes::Lanes(Gpus& gpus, const std::shared_ptr<const FrontEnd>& front_end,
             const LaneSettings& settings, std::size_t sample_bytes, std::uint32_t frames)
    : Lanes(open(gpus, front_end, settings, {sample_bytes, frames}), {sample_bytes, frames}) {}

Lanes::~Lanes() {
  for (auto& device : devices_) {
    device->when_out({});
    if (device->hangs()) keep_for_ever(std::move(device));
  }
}

bool Lanes::may_take(const LaneDevice& device, std::span<const int> on) const {
  return !device.is_out() &&
         (on.empty() || std::find(on.begin(), on.end(), device.info().index) != on.end());
}

bool Lanes::has_any(std::span<const int> on) const {
  return std::any_of(devices_.begin(), devices_.end(),
                     [&](const auto& d) { return may_take(*d, on); });
}

Lane* Lanes::pick(std::span<const int> on) {
  if (!has_any(on)) on = {};
  LaneDevice* best = nullptr;
  for (const auto& d : devices_) {
    if (!may_take(*d, on) || d->free.empty()) continue;
    if (best == nullptr || d->taken < best->taken ||
        (d->taken == best->taken && d->last_taken < best->last_taken))
      best = d.get();
  }
  if (best == nullptr) return nullptr;
  Lane* lane = best->free.front();
  best->free.pop_front();
  ++best->taken;
  best->last_taken = ++leases_;
  return lane;
}

void Lanes::deal() {
  for (Waiter* waiter : waiters_)
    if (waiter->lane == nullptr) waiter->lane = pick(waiter->on);
  dealt_.notify_all();
}

Lanes::Lease Lanes::take(std::span<const int> on) {
  std::unique_lock lock(mutex_);
  Waiter self{on};
  waiters_.push_back(&self);
  deal();
  dealt_.wait(lock, [&] { return self.lane != nullptr || !has_any({}); });
  waiters_.remove(&self);
  if (self.lane == nullptr) {
    std::string why;
    for (const auto& d : devices_) why += "; " + d->why();
    throw CudaError("no device works any more" + why);
  }
  return {self.lane, [this](Lane* done) { give_back(done); }};
}

void Lanes::give_back(Lane* lane) {
  const std::lock_guard lock(mutex_);
  for (const auto& d : devices_) {
    if (&lane->owner() != d.get()) continue;
    --d->taken;
    d->free.push_back(lane);
  }
  deal();
}

std::size_t Lanes::count() const {
  std::size_t n = 0;
  for (const auto& d : devices_) n += d->lanes().size();
  return n;
}

std::size_t Lanes::row_bytes(std::uint32_t frames) const {
  return devices_.front()->row_bytes(frames);
}

std::vector<GpuInfo> Lanes::devices() const {
  std::vector<GpuInfo> out;
  for (const auto& d : devices_) out.push_back(d->info());
  return out;
}

std::vector<LaneTimes> Lanes::times_of_devices() noexcept {
  std::vector<LaneTimes> out;
  for (const auto& d : devices_) out.push_back(d->times());
  return out;
}

LaneTimes Lanes::times() noexcept {
  LaneTimes sum;
  for (const LaneTimes& t : times_of_devices()) sum += t;
  return sum;
}

std::vector<std::string> Lanes::failures() const {
  std::vector<std::string> out;
  for (const auto& d : devices_)
    if (d->is_out()) out.push_back(d->why());
  return out;
}

}  // namespace melflow::cuda
