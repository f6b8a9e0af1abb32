// lanes.h - batches under way on devices, as many as there are lanes.
//
// In:  samples and the places of frames, in a lane's pinned memory.
// Out: rows, in the lane's pinned memory.
//
// A lane has a stream, and pinned and device memory that is taken once and used again for every
// batch. What is done for a batch (copy, kernels, copy) is given to the stream at once; batches in
// other lanes overlap with it. When batches come in equal sizes that is recorded, and launched as a
// whole from then on; one that is much smaller goes plainly.

#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "cuda/device_budget.h"
#include "cuda/gpu.h"

namespace melflow::cuda {

// Who waits for batches: tags come out in the order in which they are done.
class Completions {
 public:
  void post(void* tag);
  // Lets wait() return without a tag; remembered.
  void wake();
  // Appends what is done. Returns after `seconds` at the latest; true: something came, or wake().
  bool wait(std::vector<void*>& done, double seconds);

 private:
  std::mutex mutex_;
  std::condition_variable came_;
  std::vector<void*> done_;
  bool woken_ = false;
};

enum class Phase { computed, copied_out };

struct LaneTimes {
  double copy_in = 0, compute = 0, copy_out = 0;  // [s] on the device
  std::size_t batches = 0, replayed = 0;
  std::size_t bytes_in = 0, bytes_out = 0;
};

class Lanes;

// Of a device's lanes together.
struct SharedProgram {
  std::mutex mutex;
  std::unique_ptr<MelProgram> mel;
  std::uint32_t most_frames = 0;
};

// The memory of one lane: for batches of so many bytes of samples and so many frames.
class LaneMemory {
 public:
  // Throws CudaError where there is none left, or more is taken than is allowed.
  LaneMemory(Lanes& lanes, Gpu& gpu, std::size_t sample_bytes, std::uint32_t frames);
  LaneMemory(const LaneMemory&) = delete;
  LaneMemory& operator=(const LaneMemory&) = delete;
  ~LaneMemory();

  static constexpr std::size_t header = 256;  // the count of frames, and nothing else
  // Behind the places of the frames.
  [[nodiscard]] std::size_t samples_at() const;

  Lanes& lanes;
  Gpu& gpu;
  std::size_t sample_bytes = 0;
  std::uint32_t frames = 0;
  std::shared_ptr<SharedProgram> program;
  std::byte* host_in = nullptr;
  std::byte* host_out = nullptr;
  std::byte* device_in = nullptr;
  std::byte* device_out = nullptr;
  std::byte* scratch = nullptr;

 private:
  void release();

  std::size_t pinned_ = 0, device_ = 0;  // [bytes], as charged
};

class Lane {
 public:
  Lane(Lanes& lanes, Gpu& gpu);
  Lane(const Lane&) = delete;
  Lane& operator=(const Lane&) = delete;
  ~Lane();

  // ---- while it is filled: nothing of it is under way

  // Room for a batch of so much; before anything is put there. Throws CudaError.
  void reserve(std::size_t sample_bytes, std::uint32_t frames);
  [[nodiscard]] std::byte* samples() const { return memory_->host_in + memory_->samples_at(); }
  [[nodiscard]] std::uint32_t* offsets() const {
    return reinterpret_cast<std::uint32_t*>(memory_->host_in + LaneMemory::header);
  }
  // Starts the batch. Throws CudaError; then nothing of it is under way.
  void submit(SampleType type, std::size_t sample_bytes, std::uint32_t frames);

  // ---- while it is under way

  // Posts `tag` when the phase is reached, at once when it was already.
  void when(Phase phase, Completions& to, void* tag);
  // Throws CudaError where the device has failed.
  void check();
  // Waits until nothing of it is under way, if something is; nobody is told any more.
  void finish() noexcept;

  // ---- once it is copied out

  // [frames, columns] of KernelOptions::rows.
  [[nodiscard]] const std::byte* rows() const { return memory_->host_out; }

 private:
  friend class Lanes;

  struct Size {
    SampleType type = SampleType::int16;
    std::size_t sample_bytes = 0;
    std::uint32_t frames = 0;
    friend bool operator==(const Size&, const Size&) = default;
  };
  struct Waiting {
    Phase phase;
    Completions* to;
    void* tag;
  };

  void enqueue(const Size& size);
  void reached(Phase phase);
  template <Phase phase>
  static void reach(void* lane) {
    static_cast<Lane*>(lane)->reached(phase);
  }
  void note_times();

  Lanes& lanes_;
  Gpu& gpu_;
  static constexpr int all_phases = 2;

  std::mutex mutex_;                 // of what follows: the device's thread comes here
  int phases_reached_ = all_phases;  // nothing is under way
  std::vector<Waiting> waiting_;

  std::atomic<bool> is_broken_{false};
  std::unique_ptr<LaneMemory> memory_;
  std::unique_ptr<Stream> stream_;

  Size last_;
  Size recorded_;
  bool may_record_ = true;
  std::unique_ptr<Recording> recording_;

  bool has_times_ = false;  // of a batch that is not counted yet
  LaneTimes times_;
};

struct LaneSettings {
  std::vector<int> devices;  // indices; batches go to whichever has a free lane
  int streams = 3;           // lanes of each device
  std::shared_ptr<DeviceBudget> memory;  // of the run
  KernelOptions kernel;
};

class Lanes {
 public:
  // Takes memory for batches of this size: `sample_bytes`, `frames`. Throws std::runtime_error that
  // says what was needed, what there is and what to lower.
  Lanes(Gpus& gpus, std::shared_ptr<const MelPlan> plan, LaneSettings settings,
        std::size_t sample_bytes, std::uint32_t frames);
  Lanes(const Lanes&) = delete;
  Lanes& operator=(const Lanes&) = delete;
  ~Lanes();

  // A lane that nothing is under way in, of a device that works; waits for one. Throws CudaError
  // when no device works any more.
  using Lease = std::shared_ptr<Lane>;
  [[nodiscard]] Lease take();

  [[nodiscard]] std::size_t count() const { return lanes_.size(); }
  // Of the rows of so many frames.
  [[nodiscard]] std::size_t row_bytes(std::uint32_t frames) const;
  [[nodiscard]] const std::vector<GpuInfo>& devices() const { return infos_; }
  [[nodiscard]] std::string description() const;
  // Of all batches so far, but those of a device that broke; when nothing is under way.
  [[nodiscard]] LaneTimes times() noexcept;

 private:
  friend class Lane;
  friend class LaneMemory;
  struct Device {
    std::unique_ptr<Gpu> gpu;
    int index = 0;
    std::shared_ptr<SharedProgram> program;
  };
  void give_back(Lane* lane);
  // As those of DeviceBudget.
  void charge(const Gpu& gpu, std::size_t pinned, std::size_t device);
  void refund(const Gpu& gpu, std::size_t pinned, std::size_t device) noexcept;
  Device& device_of(const Gpu& gpu);
  std::shared_ptr<SharedProgram> program_for(const Gpu& gpu, std::uint32_t frames);

  std::shared_ptr<const MelPlan> plan_;
  LaneSettings settings_;
  std::vector<Device> devices_;
  std::vector<GpuInfo> infos_;
  std::mutex mutex_;
  std::condition_variable free_came_;
  std::vector<std::unique_ptr<Lane>> lanes_;
  std::vector<Lane*> free_;
  std::size_t working_ = 0;  // lanes that are not broken
};

}  // namespace melflow::cuda
