// phase_engine.h - an Engine that waits for batches in slots to reach a phase.
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
#include "stages/device/cuda_batch.h"

namespace melflow {

// Holds batches until their slots have reached a phase; driven by one thread.
template <class In, class Out>
class PhaseEngine final : public Engine {
 public:
  explicit PhaseEngine(cuda::Phase phase) : phase_(phase) {}

  void begin(void* tag, const Item& item, const ItemContext&) override {
    auto batch = payload_of<In>(item)->batch;
    cuda::Slot* slot = batch->slot();
    // Each batch gets a new number, so that a late answer cannot be mistaken for another batch's.
    auto* number = reinterpret_cast<void*>(++last_number_);
    under_way_.emplace(number, UnderWay{tag, std::move(batch)});
    if (slot == nullptr)
      reached_.post(number);
    else
      slot->when(phase_, reached_, number);
  }

  void collect(std::vector<Done>& done) override {
    std::vector<void*> numbers;
    reached_.wait(numbers, kPeriod);
    for (void* number : numbers) {
      const auto it = under_way_.find(number);
      if (it == under_way_.end()) continue;
      auto out = std::make_shared<Out>();
      out->batch = std::move(it->second.batch);
      done.push_back({it->second.tag, emission<Out>(std::shared_ptr<const Out>(std::move(out)))});
      under_way_.erase(it);
    }
    // A broken device makes no callback, so slots are checked from time to time.
    if (const auto now = Clock::now(); now - asked_ > std::chrono::duration<double>(kPeriod)) {
      asked_ = now;
      fail_broken(done);
    }
  }

  void wake() override { reached_.wake(); }

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

  cuda::Phase phase_;
  cuda::Completions reached_;
  std::uintptr_t last_number_ = 0;
  std::map<void*, UnderWay> under_way_;
  Clock::time_point asked_ = Clock::now();
};

}  // namespace melflow
