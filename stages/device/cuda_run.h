// cuda_run.h - what the nodes of one chain on devices share (mel_backend.h), and what crosses the
// edges between them.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "cuda/device_monitor.h"
#include "cuda/lanes.h"
#include "pipeline/stage.h"
#include "stages/device/cuda_batch.h"
#include "stages/front_end/mel_backend.h"
#include "stages/front_end/mel_front.h"

namespace melflow {

// Samples on their way to a device, rows on it, and rows back in page-locked memory.
struct DeviceBatch {
  static constexpr const char* kName = "device batch";
  std::shared_ptr<CudaBatch> batch;
  [[nodiscard]] std::size_t bytes() const { return batch->sample_bytes(); }
  [[nodiscard]] std::size_t rows() const { return 0; }
};
struct DeviceRows {
  static constexpr const char* kName = "device rows";
  std::shared_ptr<CudaBatch> batch;
  [[nodiscard]] std::size_t bytes() const { return batch->row_bytes(); }
  [[nodiscard]] std::size_t rows() const { return batch->row_count(); }
};
struct PinnedRows {
  static constexpr const char* kName = "pinned rows";
  std::shared_ptr<CudaBatch> batch;
  [[nodiscard]] std::size_t bytes() const { return batch->row_bytes(); }
  [[nodiscard]] std::size_t rows() const { return batch->row_count(); }
};

// Made by the node cuda_mel, found by the others as a fact on their edges.
class CudaRun {
 public:
  static constexpr const char* kFact = "cuda";

  CudaRun(const MelNodeOptions& options);
  CudaRun(const CudaRun&) = delete;
  CudaRun& operator=(const CudaRun&) = delete;

  [[nodiscard]] const MelFront& front() const { return front_; }
  [[nodiscard]] MelFront& front() { return front_; }
  [[nodiscard]] const MelBackendOptions& options() const { return options_; }
  // Those that are asked for. All: those like the first one, so that every row comes from the same
  // kind of device. Throws std::invalid_argument for one that is not there or of another kind.
  [[nodiscard]] std::vector<cuda::GpuInfo> devices() const;
  // "sm_90, fused, bf16": what values depend on beside the contract.
  [[nodiscard]] std::string instruction_set() const;
  [[nodiscard]] bool is_fused() const;
  // Batches that are packed at the same time, where the configuration does not say.
  [[nodiscard]] static int default_h2d_slots();
  // How recordings are cut, from the plan.
  void set_grid(std::shared_ptr<const WindowGrid> grid) { grid_ = std::move(grid); }
  // A block may have that many bytes.
  void note_block(std::size_t bytes) {
    std::size_t known = largest_block_;
    while (bytes > known && !largest_block_.compare_exchange_weak(known, bytes)) {
    }
  }
  // Before the first batch, by whichever node comes first; takes all memory. Throws RunError.
  void start(RunContext& run);
  void finish();
  [[nodiscard]] cuda::Lanes& lanes() const { return *lanes_; }
  // For the report.
  [[nodiscard]] std::vector<std::pair<std::string, Value>> summary() const;

 private:
  [[nodiscard]] cuda::LaneSettings lane_settings(RunContext& run) const;
  [[nodiscard]] cuda::LaneSize size_of_lanes(const RunContext& run) const;

  MelFront front_;
  MelBackendOptions options_;
  std::shared_ptr<const WindowGrid> grid_;  // null: recordings are not cut
  std::atomic<std::size_t> largest_block_{0};
  std::unique_ptr<cuda::Lanes> lanes_;
  std::optional<cuda::DeviceMonitor> monitor_;  // while there are lanes
  std::vector<std::pair<std::string, Value>> summary_;
};

// Batches whose lane has not reached a phase yet; driven by one thread of the scheduler.
template <class In, class Out>
class PhaseEngine final : public Engine {
 public:
  explicit PhaseEngine(cuda::Phase phase) : phase_(phase) {}

  void begin(void* tag, const Item& item, const ItemContext&) override {
    auto batch = payload_of<In>(item)->batch;
    cuda::Lane* lane = batch->lane();
    // Numbers that never come again: an answer that is late cannot be taken for another's.
    auto* number = reinterpret_cast<void*>(++last_number_);
    under_way_.emplace(number, UnderWay{tag, std::move(batch)});
    if (lane == nullptr)
      reached_.post(number);
    else
      lane->when(phase_, reached_, number);
  }

  void collect(std::vector<Done>& done) override {
    std::vector<void*> numbers;
    reached_.wait(numbers, 1.0);
    for (void* number : numbers) {
      const auto it = under_way_.find(number);
      if (it == under_way_.end()) continue;
      auto out = std::make_shared<Out>();
      out->batch = std::move(it->second.batch);
      done.push_back({it->second.tag, emission<Out>(std::shared_ptr<const Out>(std::move(out)))});
      under_way_.erase(it);
    }
    // A device that broke calls nobody back: it is asked now and then.
    if (const auto now = Clock::now(); now - asked_ > std::chrono::seconds(1)) {
      asked_ = now;
      fail_broken(done);
    }
  }

  void wake() override { reached_.wake(); }

 private:
  using Clock = std::chrono::steady_clock;
  struct UnderWay {
    void* tag = nullptr;
    std::shared_ptr<CudaBatch> batch;
  };

  void fail_broken(std::vector<Done>& done) {
    for (auto it = under_way_.begin(); it != under_way_.end();) {
      try {
        if (cuda::Lane* lane = it->second.batch->lane()) lane->check();
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
