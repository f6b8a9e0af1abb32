#include "cuda/opening.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "cuda/error.h"

namespace melflow::cuda {

// State shared by the threads and the owner.
struct Opening::State {
  State(Gpus& all, SlotSettings what, SlotSize batch)
      : gpus(all), settings(std::move(what)), size(batch), began(all.now()) {}

  // The opening of one chosen device.
  struct Attempt {
    int index = 0;
    bool is_done = false;
    std::unique_ptr<SlotDevice> device;
    std::string why;
  };

  Gpus& gpus;
  SlotSettings settings;
  const SlotSize size;
  std::shared_ptr<const FrontEnd> front_end;
  Choice choice;
  SlotsOf slots;
  const double began;

  std::mutex mutex;  // protects the members below
  std::condition_variable changed;
  bool is_chosen = false;
  bool is_left = false;  // no thread waits for the result any more
  std::vector<Attempt> attempts;
  std::vector<LeftOut> left_out;

  [[nodiscard]] bool is_done() const {
    return is_chosen && std::all_of(attempts.begin(), attempts.end(),
                                    [](const Attempt& s) { return s.is_done; });
  }
};

namespace {

// Runs `work` on a new thread, or on this one if the system allows none.
void on_thread(const std::function<void()>& work) {
  try {
    std::thread(work).detach();
  } catch (const std::system_error&) {
    work();
  }
}

}  // namespace

Opening::Opening(Gpus& gpus, std::shared_ptr<const FrontEnd> front_end, SlotSettings settings,
                 SlotSize size, Choice choice, SlotsOf slots)
    : state_(std::make_shared<State>(gpus, std::move(settings), size)) {
  state_->front_end = std::move(front_end);
  state_->choice = std::move(choice);
  state_->slots = std::move(slots);

  const auto open = [](const std::shared_ptr<State>& s, std::size_t at, const SlotSettings& each) {
    std::unique_ptr<SlotDevice> device;
    std::string why;
    try {
      device = std::make_unique<SlotDevice>(s->gpus, each.devices[at], each, s->front_end, s->size);
    } catch (const std::exception& e) {
      why = e.what();
    }
    const std::lock_guard lock(s->mutex);
    if (s->is_left) return;  // too late: closes the device here
    s->attempts[at].device = std::move(device);
    s->attempts[at].why = std::move(why);
    s->attempts[at].is_done = true;
    s->changed.notify_all();
  };
  on_thread([s = state_, open] {
    std::vector<LeftOut> left_out;
    SlotSettings each = s->settings;
    each.devices.clear();
    try {
      each.devices = s->choice(left_out);
      if (!each.devices.empty()) {
        each.slots = s->slots(each.devices.size());
        each.slots = slots_of_each(each, *s->front_end, s->size);
      }
    } catch (const std::exception& e) {
      each.devices.clear();
      left_out.push_back({-1, e.what()});
    }
    {
      const std::lock_guard lock(s->mutex);
      for (const int index : each.devices) s->attempts.push_back({index, false, nullptr, ""});
      s->left_out = std::move(left_out);
      s->is_chosen = true;
      s->changed.notify_all();
      if (s->is_left) return;
    }
    for (std::size_t i = 0; i < each.devices.size(); ++i)
      on_thread([s, open, i, each] { open(s, i, each); });
  });
}

// Waits, because ending the program while a driver is starting may crash.
Opening::~Opening() {
  if (!is_waited_for_) (void)wait();
}

std::size_t Opening::opened() const {
  const std::lock_guard lock(state_->mutex);
  return static_cast<std::size_t>(
      std::count_if(state_->attempts.begin(), state_->attempts.end(),
                    [](const State::Attempt& s) { return s.device != nullptr; }));
}

Opening::Result Opening::wait() {
  is_waited_for_ = true;
  State& s = *state_;
  std::unique_lock lock(s.mutex);
  const auto is_late = [&s] { return s.gpus.now() - s.began > s.settings.patience; };
  while (!s.is_done() && !is_late()) s.changed.wait_for(lock, std::chrono::milliseconds(50));
  s.is_left = true;
  Result out;
  out.left_out = std::move(s.left_out);
  if (!s.is_chosen)
    out.left_out.push_back(
        {-1, fmt::format("the driver has not answered for {:.0f} s", s.settings.patience)});
  std::vector<std::unique_ptr<SlotDevice>> devices;
  for (State::Attempt& attempt : s.attempts) {
    if (attempt.device)
      devices.push_back(std::move(attempt.device));
    else
      out.left_out.push_back(
          {attempt.index, attempt.is_done ? attempt.why
                                          : fmt::format("has not been opened within {:.0f} s",
                                                        s.settings.patience)});
  }
  if (!devices.empty()) out.slots = std::make_unique<SlotPool>(std::move(devices), s.size);
  return out;
}

}  // namespace melflow::cuda
