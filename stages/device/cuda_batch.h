// cuda_batch.h - takes a batch through a device: packs it into a slot, and makes rows of the
// results.
//
// In:  Batch of Windows.
// Out: MelBatch, with the same parts as from the stage mel on the processor.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "cuda/slot_pool.h"
#include "pipeline/stage/stage.h"
#include "stages/device/split_devices.h"
#include "stages/features/mel_front.h"
#include "stages/features/mel_windows.h"
#include "stages/items.h"

namespace melflow {

// A batch on a device; part i belongs to origin i of the item. A batch that does not fit into one
// slot goes through slots in pieces, one after another.
class CudaBatch {
 public:
  // Work space of one thread.
  class Scratch {
   public:
    explicit Scratch(const MelFront& front) : kernel_(front.kernel().make_scratch()) {}

   private:
    friend class CudaBatch;
    MelKernel::Scratch kernel_;
    std::vector<std::byte> frame_;  // a frame that reaches over an end of its utterance
    WindowScratch windows_;
  };

  // Waits for a free slot, fills it and starts it; waits for all pieces but the last. A part that
  // cannot be computed, or whose device fails, fails its stream.
  CudaBatch(std::shared_ptr<const Batch> batch, const MelFront& front, cuda::SlotPool& slots,
            const SplitDevices& devices, Scratch& scratch, ItemContext& context);

  // Makes a batch that the processor computes.
  explicit CudaBatch(std::shared_ptr<const Batch> batch);

  CudaBatch(const CudaBatch&) = delete;
  CudaBatch& operator=(const CudaBatch&) = delete;
  ~CudaBatch();

  // The batch that the processor is to compute; null for a batch on devices.
  [[nodiscard]] const Batch* on_host() const { return is_on_host_ ? batch_.get() : nullptr; }
  // The slot of the last piece; null where nothing has to be computed.
  [[nodiscard]] cuda::Slot* slot() const { return slot_.get(); }
  // The sizes of all pieces together.
  [[nodiscard]] std::size_t sample_bytes() const { return sample_bytes_; }
  [[nodiscard]] std::size_t row_bytes() const { return row_bytes_; }
  [[nodiscard]] std::size_t row_count() const;
  // Copies the rows to memory of their own and finishes them as far as single parts can be. To be
  // called when the slot's results are on the host.
  [[nodiscard]] std::shared_ptr<const MelBatch> rows(const MelFront& front,
                                                     ItemContext& context) const;

 private:
  struct Part {
    std::shared_ptr<MelPart> rows;                      // without its data; null: it failed
    cuda::SampleType type = cuda::SampleType::float32;  // as sent when it is alone in a slot
    // The part's share of a slot.
    std::int64_t n_samples = 0;
    std::size_t first_frame = 0, n_frames = 0;
    std::vector<std::int64_t> same_as;  // by window: the earlier one with the same samples, or -1
    std::vector<float> energies;        // [n_frames], where there is a column for them
    std::shared_ptr<Buffer> data;       // its rows, once its piece is done
  };
  // Parts [first, end), which go through one slot.
  struct Piece {
    std::size_t first = 0, end = 0;
    cuda::SampleType type = cuda::SampleType::int16;
    std::int64_t n_samples = 0;
    std::size_t n_frames = 0;
    std::size_t n_files = 0;  // files that end in it
    std::span<const int> on;  // devices that may take it; none: any
    [[nodiscard]] std::size_t sample_bytes() const {
      return static_cast<std::size_t>(n_samples) * cuda::bytes_of(type);
    }
  };

  void count_parts(const MelFront& front, Scratch& scratch, ItemContext& context);
  // Returns the piece with `part` appended.
  [[nodiscard]] static Piece joined(Piece piece, const Part& part);
  [[nodiscard]] std::vector<Piece> pieces(const cuda::SlotSize& size, const SplitDevices& devices,
                                          ItemContext& context);
  void run(const Piece& piece, bool is_last, const MelFront& front, cuda::SlotPool& slots,
           Scratch& scratch, ItemContext& context);
  void pack_piece(const MelFront& front, Scratch& scratch, ItemContext& context);
  void pack_part(std::size_t i, const MelFront& front, Scratch& scratch, ItemContext& context);
  template <class Sample>
  void pack(const Windows& in, const MelFront& front, std::uint64_t noise_key, Scratch& scratch,
            Part& out);
  template <class Sample>
  void pack_frames(const SignalView<Sample>& view, std::int64_t from, std::int64_t count,
                   std::optional<std::uint32_t> place, const MelFront& front, Scratch& scratch,
                   Part& out);
  // Makes room for `count` samples behind those in the slot; returns their position.
  std::uint32_t room(std::int64_t count);
  // Writes the frame at `start`, which reaches over an end of its utterance.
  template <class Sample>
  void put_raw_frame(std::uint32_t place, const SignalView<Sample>& view, std::int64_t start,
                     const MelPlan& plan, Scratch& scratch);
  template <class Sample>
  void put(std::uint32_t place, const Sample* samples, std::int64_t count);
  void put_offset(std::uint32_t offset);
  // Copies the part's rows out of the slot into memory of their own.
  [[nodiscard]] std::shared_ptr<Buffer> take_rows(const Part& part, const MelFront& front,
                                                  ItemContext& context) const;
  static void put_energies(const Part& part, const MelFront& front, std::byte* rows);

  std::shared_ptr<const Batch> batch_;
  cuda::SlotPool::Lease slot_;
  bool is_on_host_ = false;
  bool is_raw_ = true;           // samples are sent as they are; else conditioned here by frame
  bool is_counting_ = false;     // sizes are counted, and nothing is written
  std::size_t frame_bytes_ = 0;  // of a frame's row
  Piece piece_;                  // the piece being packed
  std::int64_t n_samples_ = 0;   // put into the slot so far
  std::size_t n_frames_ = 0;
  std::size_t sample_bytes_ = 0, row_bytes_ = 0;
  std::vector<Part> parts_;
};

}  // namespace melflow
