// host_rows.h - computes the rows of batches on the processor: for the stage mel, and for its chain
// on devices if none can be opened.
//
// In:  Batch of Windows.
// Out: MelBatch, one part for each part of the batch, float32 [rows, frames, columns].
#pragma once

#include <memory>

#include "pipeline/base/scratch_pool.h"
#include "pipeline/stage/stage.h"
#include "stages/features/mel_front.h"
#include "stages/items.h"

namespace melflow {

class HostRows {
 public:
  // `front` must outlive this object and be planned before the first call.
  explicit HostRows(const MelFront& front);
  HostRows(const HostRows&) = delete;
  HostRows& operator=(const HostRows&) = delete;
  ~HostRows();

  // Computes the rows of a batch. A part that cannot be computed fails its stream. Thread-safe.
  [[nodiscard]] std::shared_ptr<const MelBatch> compute(const Batch& in,
                                                        ItemContext& context) const;

 private:
  struct Scratch;

  [[nodiscard]] Result<std::shared_ptr<const MelPart>> compute(const Windows& in, std::size_t part,
                                                               Scratch& scratch,
                                                               ItemContext& context) const;
  template <class Sample>
  void windows(const Windows& in, std::uint64_t noise_key, Scratch& scratch, ItemContext& context,
               MelPart& out) const;
  template <class Sample>
  void whole(const Windows& in, std::uint64_t noise_key, Scratch& scratch, ItemContext& context,
             MelPart& out) const;

  const MelFront& front_;
  mutable ScratchPool<Scratch> scratch_;
};

}  // namespace melflow
