// mel_kernel.h - mel frames of one unit on the CPU.
//
// In:  SignalView (mel_signal.h), samples of a unit, int16 or float, mono.
// Out: float rows [n_frames, columns], before whatever needs the whole unit (unit_finish.h).
//
// A frame's bytes depend on its samples only (with dither, on their places, too): not on the block
// or the batch it came in, nor on the sample type when the values are equal. This holds for one
// machine type: FFTW and the inner loops use the widest vectors the processor has
// (MelKernel::instruction_set()).

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "stages/mel_plan.h"
#include "stages/mel_signal.h"
#include "stages/raii/fftw.h"

namespace melflow {

// baseline: the instructions every processor of the build's architecture has. FFTW chooses its
// own in either case.
enum class Simd { best, baseline };

class MelKernel {
 public:
  // Work space of one thread; move-only.
  class Scratch {
   public:
    std::size_t bytes() const;

   private:
    friend class MelKernel;
    AlignedBuffer frame_;     // [n_fft], windowed samples, zeros behind them
    AlignedBuffer spectrum_;  // [n_bins] complex, with room for whole vectors at both ends
    AlignedBuffer power_;     // [n_bins], likewise
    AlignedBuffer samples_;   // [frame_length], conditioned samples
  };

  explicit MelKernel(std::shared_ptr<const MelPlan> plan, Simd simd = Simd::best);
  ~MelKernel();
  MelKernel(MelKernel&&) noexcept;
  MelKernel& operator=(MelKernel&&) noexcept;

  const MelPlan& plan() const { return *plan_; }
  Scratch make_scratch() const;

  // Frames [first_frame, first_frame + n_frames) of the unit into out [n_frames, columns].
  // Safe from many threads, each with its own scratch. Throws std::out_of_range when a frame does
  // not exist, is not ready (length -1), or needs samples outside [begin, end).
  // A NaN among a frame's samples makes the frame NaN.
  template <class Sample>
  void frames(const SignalView<Sample>& view, std::int64_t first_frame, std::int64_t n_frames,
              float* out, Scratch& scratch) const;

  // What Simd::best is here, "avx2" or "baseline": belongs into the output's provenance, beside
  // FFTW's version.
  static std::string_view instruction_set();

 private:
  struct Tables;
  template <class Sample>
  double windowed_frame(const SignalView<Sample>& view, std::int64_t start, Scratch& scratch) const;

  std::shared_ptr<const MelPlan> plan_;
  std::unique_ptr<const Tables> tables_;
};

extern template void MelKernel::frames<std::int16_t>(const SignalView<std::int16_t>&, std::int64_t,
                                                     std::int64_t, float*, Scratch&) const;
extern template void MelKernel::frames<float>(const SignalView<float>&, std::int64_t, std::int64_t,
                                              float*, Scratch&) const;

// Natural logarithms of values at or above the smallest normal float, relative error below 1e-6;
// infinity and NaN stay what they are. The logarithm inside the mel rows is the same one.
void fast_ln(std::span<const float> values, float* out, Simd simd = Simd::best);

}  // namespace melflow
