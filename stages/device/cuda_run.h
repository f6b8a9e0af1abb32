// cuda_run.h - the state that the nodes of one chain on devices share (mel_backend.h), and the
// payloads on the edges between them.
//
// Devices are opened on dedicated threads while files are read; the first batch waits for them.
// With backend: auto, the processor computes the rows when no device can be opened or the job is
// too short: the chain then passes batches on, and its last node computes them.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cuda/device_monitor.h"
#include "cuda/opening.h"
#include "pipeline/stage/stage.h"
#include "stages/device/cuda_batch.h"
#include "stages/device/split_devices.h"
#include "stages/facts.h"
#include "stages/features/host_rows.h"
#include "stages/features/mel_backend.h"
#include "stages/features/mel_front.h"

namespace melflow {

// A batch in flight on a device, and a batch whose rows are back in page-locked memory.
struct DeviceBatch {
  static constexpr const char* kName = "device batch";
  std::shared_ptr<CudaBatch> batch;
  [[nodiscard]] std::size_t bytes() const { return batch->sample_bytes(); }
  [[nodiscard]] std::size_t rows() const { return 0; }
};
struct PinnedRows {
  static constexpr const char* kName = "pinned rows";
  std::shared_ptr<CudaBatch> batch;
  [[nodiscard]] std::size_t bytes() const { return batch->row_bytes(); }
  [[nodiscard]] std::size_t rows() const { return batch->row_count(); }
};

// Made by the node cuda_mel, which passes it upstream as a requirement and downstream as a
// property.
class CudaRun {
 public:
  CudaRun(const MelNodeOptions& options);
  CudaRun(const CudaRun&) = delete;
  CudaRun& operator=(const CudaRun&) = delete;

  [[nodiscard]] const MelFront& front() const { return front_; }
  [[nodiscard]] MelFront& front() { return front_; }
  [[nodiscard]] const MelBackendOptions& options() const { return options_; }
  [[nodiscard]] bool is_automatic() const { return options_.backend == MelBackend::automatic; }
  // Returns the devices that `options` asks for; finding them starts the driver. If it asks for
  // all, only those like the first one, so that every row comes from the same kind of device.
  // Devices that cannot be used are added to `left_out`.
  [[nodiscard]] static std::vector<cuda::GpuInfo> choose(
      const cuda::Gpus& gpus, const MelBackendOptions& options,
      std::vector<cuda::Opening::LeftOut>& left_out);
  // Plans the front end, and chooses the kernel that computes it.
  Properties plan(const Properties& given, PlanCheck& check);
  // Whether the fused kernel computes the rows; known after plan().
  [[nodiscard]] bool is_fused() const { return is_fused_; }
  // The number of batches packed at the same time, unless the configuration sets it.
  [[nodiscard]] static int default_h2d_concurrency();
  // Notes the size [bytes] that a block of samples may have.
  void note_block(std::size_t bytes) {
    std::size_t known = largest_block_;
    while (bytes > known && !largest_block_.compare_exchange_weak(known, bytes)) {
    }
  }

  // Begins to open the devices. Every node calls it before its first batch; only the first call
  // counts.
  void start(RunContext& run);
  // Returns the slots that batches go to, or null for the processor; waits until the devices are
  // open. Throws RunError when a device that was asked for cannot be opened. From any thread.
  cuda::SlotPool* slots(RunContext& run);
  // Whether the processor computes the rows; false while that is not known.
  [[nodiscard]] bool is_on_host() const { return is_on_host_; }
  [[nodiscard]] const HostRows& host_rows() const { return host_rows_; }
  // The size of a batch's samples [bytes] for the processor: small enough that there are batches
  // for all workers, and large enough that passing them along the chain takes negligible time.
  [[nodiscard]] std::size_t host_batch_bytes() const { return host_batch_bytes_; }
  [[nodiscard]] const SplitDevices& split_devices() const { return split_devices_; }
  void finish();
  // The report on the devices.
  [[nodiscard]] std::vector<std::pair<std::string, Value>> summary() const { return summary_; }

 private:
  // An estimate of a corpus before it is read.
  struct Corpus {
    double files = 0, samples = 0;
  };
  [[nodiscard]] static Corpus look_at(const RunContext& run);
  [[nodiscard]] cuda::SlotSettings slot_settings(RunContext& run) const;
  void set_splits(RunContext& run);
  [[nodiscard]] std::size_t batch_bytes(double typical) const;
  void open(RunContext& run, const Corpus& corpus);
  void settle(RunContext& run);
  void use_slots(std::unique_ptr<cuda::SlotPool> slots);
  void use_host(const std::string& why);

  MelFront front_;
  MelBackendOptions options_;
  HostRows host_rows_{front_};
  SplitDevices split_devices_;
  std::optional<WindowGrid> grid_;  // none: recordings are not cut
  FullBatch given_;                 // limits of the batches that arrive
  bool is_fused_ = false;
  std::atomic<std::size_t> largest_block_{0};
  std::size_t host_batch_bytes_ = 0;  // from start() on
  std::atomic<bool> is_on_host_{false};

  std::mutex mutex_;  // guards the members below until is_settled_
  bool has_started_ = false, is_settled_ = false;
  std::string refusal_;  // why the run cannot continue
  std::unique_ptr<cuda::Opening> opening_;
  std::unique_ptr<cuda::SlotPool> slots_;
  std::optional<cuda::DeviceMonitor> monitor_;  // while there are slots
  std::vector<std::string> left_out_;           // for the report
  std::vector<std::pair<std::string, Value>> summary_;
};

}  // namespace melflow
