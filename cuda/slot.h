// slot.h - takes one batch at a time through a device and back.
//
// In:  samples and the positions of frames, in the slot's pinned memory.
// Out: rows, in the slot's pinned memory.
//
// A slot has a stream, and pinned and device memory of one size, allocated once and used for every
// batch. All work for a batch (copy, kernels, copy) is enqueued at once. For batches of equal sizes
// the work is recorded, and then launched as a whole; the work of a much smaller batch is enqueued
// directly.

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

// Pinned and device memory of a slot.
class SlotMemory {
 public:
  // Throws CudaError if none is left, or the limit is exceeded.
  SlotMemory(SlotDevice& device, const SlotSize& size);
  SlotMemory(const SlotMemory&) = delete;
  SlotMemory& operator=(const SlotMemory&) = delete;
  ~SlotMemory();

  // host_in and device_in: a header with the count of frames, the samples, and after them the
  // position of each frame's first sample.
  static constexpr std::size_t header = 256;  // [bytes]
  // Where the positions are, given the bytes of samples. [bytes]
  [[nodiscard]] static std::size_t offsets_at(std::size_t sample_bytes);
  // The size of a slot in each direction; bytes_of_frame: of one frame's row. [bytes]
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

// Threads: one caller at a time, which holds its lease (SlotPool::take); done() is called on a
// thread of the driver. Lifetime: within that of its SlotDevice.
// Locks: its own is not held over SlotDevice's; Completions::post() is called under it.
class Slot {
 public:
  // Throws CudaError.
  Slot(SlotDevice& device, const SlotSize& size);
  Slot(const Slot&) = delete;
  Slot& operator=(const Slot&) = delete;
  ~Slot();

  [[nodiscard]] const SlotDevice& owner() const { return device_; }

  // ---- While it is filled: nothing of it is in flight

  [[nodiscard]] std::byte* samples() const { return memory_.host_in + SlotMemory::header; }
  // submit() moves them to the end of the actual samples.
  [[nodiscard]] std::uint32_t* offsets() const { return offsets_behind(size_.sample_bytes); }
  // Starts the batch, at most of the slot's size. `files`: for the report. If it throws CudaError,
  // the device is out.
  void submit(SampleType type, std::size_t sample_bytes, std::uint32_t frames,
              std::size_t files = 0);

  // ---- While it is in flight

  // Posts `tag` when the rows are copied out; at once if they already are.
  void when_done(Completions& to, void* tag);
  // Throws CudaError if the device has failed, or has done nothing for too long.
  void check();
  // Posts no more tags, and waits until nothing of the slot is in flight or the device is out.
  void finish() noexcept;
  // Like finish(), but throws CudaError if the device is out.
  void wait();

  // ---- Once it is copied out

  // [frames, columns] of type KernelOptions::rows.
  [[nodiscard]] const std::byte* rows() const { return memory_.host_out; }

 private:
  friend class SlotDevice;

  struct Batch {
    SampleType type = SampleType::int16;
    std::size_t sample_bytes = 0;
    std::uint32_t frames = 0;
    friend bool operator==(const Batch&, const Batch&) = default;
  };
  // A tag, and the queue to post it to.
  struct Notice {
    Completions* to;
    void* tag;
  };

  [[nodiscard]] std::uint32_t* offsets_behind(std::size_t sample_bytes) const {
    return reinterpret_cast<std::uint32_t*>(memory_.host_in + SlotMemory::offsets_at(sample_bytes));
  }
  void enqueue(const Batch& batch);
  [[nodiscard]] bool is_recorded(const Batch& batch) const;
  void record_again(const Batch& batch);
  // Launches the recording; returns false, with nothing in flight, if that fails.
  bool replay();
  void done();
  // Adds the times of the last batch to the device's. Throws CudaError.
  void note_times();

  SlotDevice& device_;
  const SlotSize size_;

  std::mutex mutex_;  // protects the members below: a thread of the driver accesses them
  std::condition_variable changed_;
  bool is_under_way_ = false;
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
