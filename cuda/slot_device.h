// slot_device.h - one device with its slots: opened, working or out.
//
// A device is out for good once a call on it has failed, or once it has done nothing for longer
// than SlotSettings::patience although something was under way. What is under way on it then fails,
// and it is given no more. A device that hangs is not called at all, so no thread waits for it:
// what it holds stays until the program ends.

#pragma once

#include <atomic>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "cuda/device_budget.h"
#include "cuda/gpu.h"
#include "cuda/slot.h"

namespace melflow::cuda {

struct SlotSettings {
  std::vector<int> devices;              // indices
  int slots = 8;                         // slots of each device; fewer where memory is short
  bool graphs = true;                    // batches of equal size are launched from a recording
  double patience = 60;                  // [s]
  std::shared_ptr<DeviceBudget> memory;  // of the run
  KernelOptions kernel;
};

// How many slots each device gets where settings.slots are wanted: as many as memory.pinned allows
// while as much again stays for other nodes of the run, one at least.
int slots_of_each(const SlotSettings& settings, const FrontEnd& front_end, const SlotSize& size);

// What a device did. Times of copies and kernels are by the device's own clock, the others by the
// host's.
struct SlotTimes {
  double copy_in = 0, compute = 0, copy_out = 0;  // [s] on the device
  // Between the first batch that was given to it and the last that came back; in `idle` of that
  // nothing was under way. [s]
  double span = 0, idle = 0;
  std::size_t batches = 0, replayed = 0, files = 0, frames = 0;
  std::size_t bytes_in = 0, bytes_out = 0;

  SlotTimes& operator+=(const SlotTimes& more);
};

class SlotDevice {
 public:
  // Opens it and takes one slot at least. Throws CudaError, and what Gpu::make_mel() throws.
  SlotDevice(Gpus& gpus, int index, SlotSettings settings,
             std::shared_ptr<const FrontEnd> front_end, const SlotSize& size);
  SlotDevice(const SlotDevice&) = delete;
  SlotDevice& operator=(const SlotDevice&) = delete;
  ~SlotDevice();

  [[nodiscard]] const GpuInfo& info() const { return info_; }
  [[nodiscard]] const std::vector<std::unique_ptr<Slot>>& slots() const { return slots_; }
  [[nodiscard]] std::string description() const { return program_->description(); }
  // What the rows of so many frames take. [bytes]
  [[nodiscard]] std::size_t row_bytes(std::uint32_t frames) const;

  [[nodiscard]] bool is_out() const { return is_out_; }
  // True: the device must not be called any more, and this object must not be destroyed.
  [[nodiscard]] bool hangs() const { return hangs_; }
  // Why it is out.
  [[nodiscard]] std::string why() const;
  // Gives the device up; only the first call has an effect. Calls what when_out() was given.
  void put_out(const std::string& why, bool hangs = false) noexcept;
  // Throws CudaError where it is out, and puts it out where it hangs.
  void check();
  // Sets what is called, once, when the device goes out. To be called before any batch.
  void when_out(std::function<void()> tell);

  // The times of all batches that came back.
  [[nodiscard]] SlotTimes times() noexcept;

  // For SlotPool, with its lock held.
  std::deque<Slot*> free;  // the one that is free for longest first
  int taken = 0;           // slots
  std::uint64_t last_taken = 0;

 private:
  friend class Slot;
  friend class SlotMemory;

  // A batch begins, or has come back.
  void begun();
  void ended();

  Gpus& gpus_;
  const SlotSettings settings_;
  std::shared_ptr<const FrontEnd> front_end_;
  std::unique_ptr<Gpu> gpu_;
  GpuInfo info_;
  std::mutex program_mutex_;
  std::unique_ptr<MelProgram> program_;
  std::vector<std::unique_ptr<Slot>> slots_;

  std::atomic<bool> is_out_{false}, hangs_{false};
  mutable std::mutex mutex_;  // of what follows
  std::string why_;
  std::function<void()> tell_;
  int under_way_ = 0;
  double first_begun_ = -1, last_moved_ = 0, last_ended_ = 0;  // [s], of the host's clock
  SlotTimes times_;
};

}  // namespace melflow::cuda
