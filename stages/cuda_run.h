// cuda_run.h - what the nodes of one chain on devices share (mel_backend.h), and what crosses the
// edges between them.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "cuda/lanes.h"
#include "pipeline/stage.h"
#include "stages/cuda_batch.h"
#include "stages/mel_backend.h"
#include "stages/mel_front.h"

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
  // Before the first batch, by whichever node comes first; takes all memory. Throws RunError.
  void start(RunContext& run);
  void finish();
  [[nodiscard]] cuda::Lanes& lanes() const { return *lanes_; }
  // For the report.
  [[nodiscard]] std::vector<std::pair<std::string, Value>> summary() const;

 private:
  MelFront front_;
  MelBackendOptions options_;
  std::unique_ptr<cuda::Lanes> lanes_;
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
    under_way_.emplace(tag, std::move(batch));
    if (lane == nullptr)
      reached_.post(tag);
    else
      lane->when(phase_, reached_, tag);
  }

  void collect(std::vector<Done>& done) override {
    std::vector<void*> tags;
    // A device that broke calls nobody back: it is asked now and then.
    if (!reached_.wait(tags, 1.0)) return fail_broken(done);
    for (void* tag : tags) {
      const auto it = under_way_.find(tag);
      if (it == under_way_.end()) continue;
      auto out = std::make_shared<Out>();
      out->batch = std::move(it->second);
      under_way_.erase(it);
      done.push_back({tag, emission<Out>(std::shared_ptr<const Out>(std::move(out)))});
    }
  }

  void wake() override { reached_.wake(); }

 private:
  void fail_broken(std::vector<Done>& done) {
    for (auto it = under_way_.begin(); it != under_way_.end();) {
      try {
        it->second->lane()->check();
        ++it;
      } catch (const std::exception& e) {
        done.push_back({it->first, ItemError::failed(e.what())});
        it = under_way_.erase(it);
      }
    }
  }

  cuda::Phase phase_;
  cuda::Completions reached_;
  std::map<void*, std::shared_ptr<CudaBatch>> under_way_;
};

}  // namespace melflow
