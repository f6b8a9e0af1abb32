// slot_engine.h - an Engine that waits for the rows of batches in slots to be copied back.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "cuda/completions.h"
#include "cuda/slot.h"
#include "pipeline/stage/stage_kinds.h"
#include "stages/device/cuda_run.h"

namespace melflow {

// Driven by one thread.
class SlotEngine final : public Engine {
 public:
  void begin(void* tag, const Item& item, const ItemContext&) override {
    auto batch = payload_of<DeviceBatch>(item)->batch;
    cuda::Slot* slot = batch->slot();
    // Each batch gets a new number, so that a late answer cannot be mistaken for another batch's.
    auto* number = reinterpret_cast<void*>(++last_number_);
    under_way_.emplace(number, UnderWay{tag, std::move(batch)});
    if (slot == nullptr)
      finished_.post(number);
    else
      slot->when_done(finished_, number);
  }

  void collect(std::vector<Done>& done) override {
    std::vector<void*> numbers;
    finished_.wait(numbers, kPeriod);
    for (void* number : numbers) {
      const auto it = under_way_.find(number);
      if (it == under_way_.end()) continue;
      auto out = std::make_shared<PinnedRows>();
      out->batch = std::move(it->second.batch);
      done.push_back({it->second.tag,
                      emission<PinnedRows>(std::shared_ptr<const PinnedRows>(std::move(out)))});
      under_way_.erase(it);
    }
    // A broken device makes no callback, so slots are checked from time to time.
    if (const auto now = Clock::now(); now - asked_ > std::chrono::duration<double>(kPeriod)) {
      asked_ = now;
      fail_broken(done);
    }
  }

  void wake() override { finished_.wake(); }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr double kPeriod = 0.25;  // [s]
  struct UnderWay {
    void* tag = nullptr;
    std::shared_ptr<CudaBatch> batch;
  };

  void fail_broken(std::vector<Done>& done) {
    for (auto it = under_way_.begin(); it != under_way_.end();) {
      try {
        if (cuda::Slot* slot = it->second.batch->slot()) slot->check();
        ++it;
      } catch (const std::exception& e) {
        done.push_back({it->second.tag, ItemError::failed(e.what())});
        it = under_way_.erase(it);
      }
    }
  }

  cuda::Completions finished_;
  std::uintptr_t last_number_ = 0;
  std::map<void*, UnderWay> under_way_;
  Clock::time_point asked_ = Clock::now();
};

}  // namespace melflow
