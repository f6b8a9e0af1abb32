// slot.h - one batch at a time on its way through a device and back.
//
// In:  samples and the places of frames, in the slot's pinned memory.
// Out: rows, in the slot's pinned memory.
//
// A slot has a stream, and pinned and device memory of one size, taken once and used for batch
// after batch. What is done for a batch (copy, kernels, copy) is given to the stream at once. When
// batches come in equal sizes that is recorded, and launched as a whole from then on; one that is
// much smaller goes plainly.

#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "cuda/completions.h"
#include "cuda/gpu.h"

namespace melflow::cuda {

class SlotDevice;

// The largest batch.
struct SlotSize {
  std::size_t sample_bytes = 0;
  std::uint32_t frames = 0;
};

enum class Phase { computed, copied_out };

// Pinned and device memory of a slot.
class SlotMemory {
 public:
  // Throws CudaError where there is none left, or more is taken than is allowed.
  SlotMemory(SlotDevice& device, const SlotSize& size);
  SlotMemory(const SlotMemory&) = delete;
  SlotMemory& operator=(const SlotMemory&) = delete;
  ~SlotMemory();

  static constexpr std::size_t header = 256;  // [bytes], the count of frames and nothing else
  // Where samples begin in host_in and device_in, behind the places of the frames. [bytes]
  [[nodiscard]] static std::size_t samples_at(const SlotSize& size);
  // What a slot takes in one direction; bytes_of_frame: of one frame's row. [bytes]
  [[nodiscard]] static std::size_t bytes_in(const SlotSize& size);
  [[nodiscard]] static std::size_t bytes_out(const SlotSize& size, std::size_t bytes_of_frame);

  std::byte* host_in = nullptr;
  std::byte* host_out = nullptr;
  std::byte* device_in = nullptr;
  std::byte* device_out = nullptr;
  std::byte* scratch = nullptr;

 private:
  void release();

  SlotDevice& device_;
  std::size_t pinned_bytes_ = 0, device_bytes_ = 0;  // as charged
};

class Slot {
 public:
  // Throws CudaError.
  Slot(SlotDevice& device, const SlotSize& size);
  Slot(const Slot&) = delete;
  Slot& operator=(const Slot&) = delete;
  ~Slot();

  [[nodiscard]] const SlotDevice& owner() const { return device_; }

  // ---- while it is filled: nothing of it is under way

  [[nodiscard]] std::byte* samples() const { return memory_.host_in + samples_at_; }
  [[nodiscard]] std::uint32_t* offsets() const {
    return reinterpret_cast<std::uint32_t*>(memory_.host_in + SlotMemory::header);
  }
  // Starts the batch, at most of the slot's size. `files`: for the report. Throws CudaError; then
  // the device is out.
  void submit(SampleType type, std::size_t sample_bytes, std::uint32_t frames,
              std::size_t files = 0);

  // ---- while it is under way

  // Posts `tag` when the phase is reached, at once when it was already.
  void when(Phase phase, Completions& to, void* tag);
  // Throws CudaError where the device has failed, or has done nothing for too long.
  void check();
  // Posts no more tags, and waits until nothing of the slot is under way or the device is out.
  void finish() noexcept;
  // Like finish(), and throws CudaError where the device is out.
  void wait();

  // ---- once it is copied out

  // [frames, columns] of KernelOptions::rows.
  [[nodiscard]] const std::byte* rows() const { return memory_.host_out; }

 private:
  friend class SlotDevice;

  struct Batch {
    SampleType type = SampleType::int16;
    std::size_t sample_bytes = 0;
    std::uint32_t frames = 0;
    friend bool operator==(const Batch&, const Batch&) = default;
  };
  // Which queue gets which tag, at which phase.
  struct Notice {
    Phase phase;
    Completions* to;
    void* tag;
  };

  void enqueue(const Batch& batch);
  [[nodiscard]] bool is_recorded(const Batch& batch) const;
  void record_again(const Batch& batch);
  // Launches the recording; false where that cannot be done, and nothing of it is under way.
  bool replay();
  void reached(Phase phase);
  template <Phase phase>
  static void reach(void* slot) {
    static_cast<Slot*>(slot)->reached(phase);
  }
  // Adds the times of the last batch to the device's. Throws CudaError.
  void note_times();

  SlotDevice& device_;
  const SlotSize size_;
  const std::size_t samples_at_;
  static constexpr int all_phases = 2;

  std::mutex mutex_;  // of what follows: the device's thread comes here
  std::condition_variable changed_;
  int phases_reached_ = all_phases;  // nothing is under way
  std::vector<Notice> notices_;

  SlotMemory memory_;
  std::unique_ptr<Stream> stream_;

  Batch last_;
  Batch recorded_;
  bool may_record_ = true;
  std::unique_ptr<Recording> recording_;

  bool has_times_ = false;  // of a batch that is not counted yet
};

}  // namespace melflow::cuda
