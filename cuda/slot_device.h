// slot_device.h - one device with its slots: being opened, working or out.
//
// A device is out for good once a call on it has failed, or once it has done nothing for longer
// than SlotSettings::patience although work was in flight. That work then fails, and the device
// gets no more. A device that hangs is not called at all, so no thread waits for it: its resources
// remain until the program ends.

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
  int slots = 8;                         // slots of each device; fewer if memory is short
  bool graphs = true;                    // batches of equal size are launched from a recording
  double patience = 60;                  // [s]
  std::shared_ptr<DeviceBudget> memory;  // of the run
  KernelOptions kernel;
};

// Returns the number of slots for each device, at most settings.slots: as many as fit into half of
// what memory.pinned allows, so that other nodes of the run have as much; at least one.
int slots_of_each(const SlotSettings& settings, const FrontEnd& front_end, const SlotSize& size);

// The work of a device. Times of copies and kernels are by the device's own clock, the others by
// the host's.
struct SlotTimes {
  double copy_in = 0, compute = 0, copy_out = 0;  // [s] on the device
  // From the first batch submitted to the last one returned; `idle` is the part of it in which
  // nothing was in flight. [s]
  double span = 0, idle = 0;
  std::size_t batches = 0, replayed = 0, files = 0, frames = 0;
  std::size_t bytes_in = 0, bytes_out = 0;

  SlotTimes& operator+=(const SlotTimes& more);
};

// Threads: any, except `free`, `taken` and `last_taken`, which are SlotPool's. The function of
// when_out() is called on the thread that found the device out.
// Lifetime: outlives its slots; one that hangs is never destroyed.
// Locks: mutex_ is a leaf, and when_out()'s function is called without it; program_mutex_ is held
// over calls of the driver.
class SlotDevice {
 public:
  // Opens the device and allocates at least one slot. Throws CudaError, and as Gpu::make_mel().
  SlotDevice(Gpus& gpus, int index, SlotSettings settings,
             std::shared_ptr<const FrontEnd> front_end, const SlotSize& size);
  SlotDevice(const SlotDevice&) = delete;
  SlotDevice& operator=(const SlotDevice&) = delete;
  ~SlotDevice();

  [[nodiscard]] const GpuInfo& info() const { return info_; }
  [[nodiscard]] const std::vector<std::unique_ptr<Slot>>& slots() const { return slots_; }
  [[nodiscard]] std::string description() const { return program_->description(); }
  // The size of the rows of `frames` frames. [bytes]
  [[nodiscard]] std::size_t row_bytes(std::uint32_t frames) const;

  [[nodiscard]] bool is_out() const { return is_out_; }
  // Whether the device must not be called any more, and this object must not be destroyed.
  [[nodiscard]] bool hangs() const { return hangs_; }
  // The reason why it is out.
  [[nodiscard]] std::string why() const;
  // Puts the device out; only the first call has an effect. Calls the function of when_out().
  void put_out(const std::string& why, bool hangs = false) noexcept;
  // Throws CudaError if it is out, and puts it out if it hangs.
  void check();
  // Sets a function that is called, once, when the device goes out. Call this before any batch.
  void when_out(std::function<void()> tell);

  // The times of all batches that were returned.
  [[nodiscard]] SlotTimes times() noexcept;

  // For SlotPool, with its lock held.
  std::deque<Slot*> free;  // least recently used first
  int taken = 0;           // number of slots in use
  std::uint64_t last_taken = 0;

 private:
  friend class Slot;
  friend class SlotMemory;

  // Called when a batch begins, and when it is returned.
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
  mutable std::mutex mutex_;  // protects the members below
  std::string why_;
  std::function<void()> tell_;
  int under_way_ = 0;
  double first_begun_ = -1, last_moved_ = 0, last_ended_ = 0;  // [s], by the host's clock
  SlotTimes times_;
};

}  // namespace melflow::cuda
