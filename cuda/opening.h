// opening.h - opens devices, each on a thread of its own, while the caller does other things.
//
// In:  the devices; the size of batches.
// Out: slots on the devices that could be opened, and why the others could not.
//
// A driver that does not answer is waited for no longer than SlotSettings::patience, and then
// abandoned, with the thread that called it.

#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "cuda/slot_pool.h"

namespace melflow::cuda {

class Opening {
 public:
  struct LeftOut {
    int index = -1;  // -1: all of them
    std::string why;
  };
  // Returns the devices to open, and appends those that were requested but cannot be opened. Called
  // on a thread of its own, since a driver that is asked for its devices starts all of them.
  using Choice = std::function<std::vector<int>(std::vector<LeftOut>& left_out)>;
  // Returns the number of slots of each device, given the number of devices.
  using SlotsOf = std::function<int(std::size_t devices)>;

  // Begins to open devices; `choice` and `slots` determine settings.devices and settings.slots.
  Opening(Gpus& gpus, std::shared_ptr<const FrontEnd> front_end, SlotSettings settings,
          SlotSize size, Choice choice, SlotsOf slots);
  Opening(const Opening&) = delete;
  Opening& operator=(const Opening&) = delete;
  // Waits as wait() does, unless that was called, and closes the devices that were opened.
  ~Opening();

  struct Result {
    std::unique_ptr<SlotPool> slots;  // null if there is no device
    std::vector<LeftOut> left_out;
  };
  // Waits until all devices are open or abandoned; called once. Does not throw.
  Result wait();
  // The number of devices that are open so far.
  [[nodiscard]] std::size_t opened() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
  bool is_waited_for_ = false;
};

}  // namespace melflow::cuda
