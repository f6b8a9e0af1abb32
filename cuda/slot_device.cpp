#include "cuda/slot_device.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "cuda/error.h"

namespace melflow::cuda {

int slots_of_each(const SlotSettings& settings, const FrontEnd& front_end, const SlotSize& size) {
  const std::size_t of_frame =
      size_of(settings.kernel.rows) * static_cast<std::size_t>(front_end.settings.columns);
  const std::size_t pinned = SlotMemory::bytes_in(size) + SlotMemory::bytes_out(size, of_frame);
  const std::size_t room = settings.memory->pinned_left() / 2 / settings.devices.size();
  return static_cast<int>(
      std::clamp<std::size_t>(room / pinned, 1, static_cast<std::size_t>(settings.slots)));
}

SlotTimes& SlotTimes::operator+=(const SlotTimes& more) {
  copy_in += more.copy_in;
  compute += more.compute;
  copy_out += more.copy_out;
  span = std::max(span, more.span);
  idle += more.idle;
  batches += more.batches;
  replayed += more.replayed;
  files += more.files;
  frames += more.frames;
  bytes_in += more.bytes_in;
  bytes_out += more.bytes_out;
  return *this;
}

SlotDevice::SlotDevice(Gpus& gpus, int index, SlotSettings settings,
                       std::shared_ptr<const FrontEnd> front_end, const SlotSize& size)
    : gpus_(gpus),
      settings_(std::move(settings)),
      front_end_(std::move(front_end)),
      gpu_(gpus.open(index)),
      info_(gpu_->info()),
      program_(gpu_->make_mel(*front_end_, settings_.kernel, size.frames)) {
  for (int i = 0; i < settings_.slots; ++i) {
    try {
      slots_.push_back(std::make_unique<Slot>(*this, size));
    } catch (const CudaError&) {
      if (i == 0) throw;
      break;
    }
  }
  for (const auto& slot : slots_) free.push_back(slot.get());
}

// Destroys slots first: they report to members declared after them.
SlotDevice::~SlotDevice() { slots_.clear(); }

std::size_t SlotDevice::row_bytes(std::uint32_t frames) const {
  return frames * size_of(settings_.kernel.rows) *
         static_cast<std::size_t>(front_end_->settings.columns);
}

std::string SlotDevice::why() const {
  const std::lock_guard lock(mutex_);
  return why_;
}

void SlotDevice::when_out(std::function<void()> tell) {
  const std::lock_guard lock(mutex_);
  tell_ = std::move(tell);
}

void SlotDevice::put_out(const std::string& why, bool hangs) noexcept {
  std::function<void()> tell;
  {
    const std::lock_guard lock(mutex_);
    if (is_out_) return;
    why_ = why;
    hangs_ = hangs;
    is_out_ = true;
    tell = tell_;
  }
  if (tell) tell();
}

void SlotDevice::check() {
  std::string hangs;
  {
    const std::lock_guard lock(mutex_);
    if (is_out_) throw CudaError(why_);
    const double silent = gpus_.now() - last_moved_;
    if (under_way_ > 0 && silent > settings_.patience)
      hangs = fmt::format(
          "device {} ({}) has done nothing for {:.0f} s with {} batches under way; it is given up",
          info_.index, info_.name, silent, under_way_);
  }
  if (hangs.empty()) return;
  put_out(hangs, true);
  throw CudaError(why());
}

void SlotDevice::begun() {
  const std::lock_guard lock(mutex_);
  const double now = gpus_.now();
  if (first_begun_ < 0)
    first_begun_ = now;
  else if (under_way_ == 0)
    times_.idle += now - last_ended_;
  if (under_way_++ == 0) last_moved_ = now;
}

void SlotDevice::ended() {
  const std::lock_guard lock(mutex_);
  last_moved_ = last_ended_ = gpus_.now();
  --under_way_;
  times_.span = last_ended_ - first_begun_;
}

SlotTimes SlotDevice::times() noexcept {
  for (const auto& slot : slots_) {
    try {
      slot->note_times();
    } catch (const std::exception& e) {
      put_out(e.what());
    }
  }
  const std::lock_guard lock(mutex_);
  return times_;
}

}  // namespace melflow::cuda
