// cuda_batch.h - a batch on its way through a device: packed into a lane, and rows made of what
// comes out of it.
//
// In:  Batch of Windows.
// Out: MelBatch, the same parts as the stage mel on the processor gives.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "cuda/lanes.h"
#include "pipeline/stage.h"
#include "stages/front_end/mel_front.h"
#include "stages/front_end/mel_windows.h"
#include "stages/items.h"

namespace melflow {

// What is known of a batch in a lane; part i belongs to origin i of the item.
class CudaBatch {
 public:
  // Work space of one thread.
  class Scratch {
   public:
    explicit Scratch(const MelFront& front) : kernel_(front.kernel().make_scratch()) {}

   private:
    friend class CudaBatch;
    MelKernel::Scratch kernel_;
    std::vector<std::byte> frame_;  // one that reaches over an end
    WindowScratch windows_;
  };

  // Fills the lane and starts it; a part that cannot be computed fails its stream. Without a frame
  // the lane is given back. Throws CudaError.
  CudaBatch(std::shared_ptr<const Batch> batch, const MelFront& front, cuda::Lanes::Lease lane,
            Scratch& scratch, ItemContext& context);

  CudaBatch(const CudaBatch&) = delete;
  CudaBatch& operator=(const CudaBatch&) = delete;
  ~CudaBatch();

  // Null where nothing had to be computed.
  [[nodiscard]] cuda::Lane* lane() const { return lane_.get(); }
  [[nodiscard]] std::size_t sample_bytes() const { return sample_bytes_; }
  [[nodiscard]] std::size_t row_bytes() const { return n_frames_ * frame_bytes_; }
  [[nodiscard]] std::size_t row_count() const;
  // Once the lane is copied out: the rows in memory of their own, finished as far as a part can be.
  [[nodiscard]] std::shared_ptr<const MelBatch> rows(const MelFront& front,
                                                     ItemContext& context) const;

 private:
  struct Part {
    std::shared_ptr<MelPart> rows;  // without its data; null: it failed
    std::size_t first_frame = 0;    // in the lane
    std::size_t n_frames = 0;
    std::vector<std::int64_t> same_as;  // of windows
    std::vector<float> energies;        // [n_frames], where there is a column for them
  };

  template <class Sample>
  void pack(const Windows& in, const MelFront& front, std::uint64_t noise_key, Scratch& scratch,
            Part& out);
  template <class Sample>
  void pack_frames(const SignalView<Sample>& view, std::int64_t from, std::int64_t count,
                   std::optional<std::uint32_t> place, const MelFront& front, Scratch& scratch,
                   Part& out);
  void pack_parts(const MelFront& front, Scratch& scratch, ItemContext& context);
  // Room for `count` samples behind those that are there; their place.
  std::uint32_t room(std::int64_t count);
  // The frame at `start`, which reaches over an end of its unit.
  template <class Sample>
  void put_raw_frame(std::uint32_t place, const SignalView<Sample>& view, std::int64_t start,
                     const MelPlan& plan, Scratch& scratch);
  template <class Sample>
  void put(std::uint32_t place, const Sample* samples, std::int64_t count);
  void put_offset(std::uint32_t offset);
  void copy_rows(const Part& part, std::size_t row_bytes, std::byte* to) const;
  static void put_energies(const Part& part, const MelFront& front, std::byte* rows);

  std::shared_ptr<const Batch> batch_;
  cuda::Lanes::Lease lane_;
  cuda::SampleType type_ = cuda::SampleType::int16;
  bool is_raw_ = true;        // samples go as they are; else conditioned here, frame by frame
  bool is_counting_ = false;  // nothing is written yet
  std::size_t sample_bytes_ = 0;
  std::uint32_t n_frames_ = 0;
  std::size_t frame_bytes_ = 0;  // of a frame's row
  std::vector<Part> parts_;
};

}  // namespace melflow
