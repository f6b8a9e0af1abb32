// mel_kernel.h - computes mel frames on the CPU, as many at once as a vector has lanes; with
// precision: double, one at a time (double_row.h).
//
// In:  SignalView (mel_signal.h), samples of an utterance, int16 or float, mono.
// Out: float rows [n_frames, columns]. The steps that need the whole utterance (utterance_steps.h)
//      come later.
//
// A frame's bytes depend only on its samples (with dither, also on their positions): not on the
// block or batch it came in, on the frames computed with it, or on the sample type if the values
// are equal. AVX2 and AVX-512 yield the same bytes, the baseline others
// (MelKernel::instruction_set()).

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "stages/features/mel/double_row.h"
#include "stages/features/mel/lane_loops.h"
#include "stages/features/mel/lane_tables.h"
#include "stages/features/mel/mel_plan.h"
#include "stages/features/mel/mel_signal.h"
#include "stages/features/mel/real_fft.h"

namespace melflow {

class MelKernel {
 public:
  // Work space of one thread, and frames that wait until their group is full; move-only.
  class Scratch {
    friend class MelKernel;
    AlignedBuffer points_;         // [n_fft/2][2][width]; for RealFft [n_fft], one windowed frame
    AlignedBuffer spectrum_;       // [n_bins] complex, of RealFft
    AlignedArray<double> of_fft_;  // RealFft's own
    AlignedBuffer power_;          // [n_bins][width]
    AlignedBuffer
        gathered_;  // [group][frame_length], frames that differ from the utterance's samples
    AlignedBuffer unread_;        // [columns], the rows of lanes without a frame
    AlignedBuffer work_;          // [frame_length], for the conditioner
    DoubleRow::Scratch doubles_;  // replaces all these with precision: double

    int waiting_ = 0;
    bool is_int16_ = false;
    std::array<const void*, lanes::max_width> samples_{};  // [waiting], [frame_length] each
    std::array<float*, lanes::max_width> rows_{};          // [waiting], first band or bin
  };

  // The instruction sets that this processor can run, widest first: "avx512", "avx2", "baseline";
  // the baseline ("neon" on 64-bit Arm) is what every processor of the build's architecture has.
  static std::vector<std::string_view> instruction_sets();
  // The one that the variable names, or the widest; for the output's provenance. RealFft takes the
  // widest in any case. Throws std::invalid_argument if the variable names none of them.
  static constexpr const char* kInstructionSetVariable = "MELFLOW_INSTRUCTION_SET";
  static std::string_view instruction_set();

  // `set`: one of instruction_sets().
  explicit MelKernel(std::shared_ptr<const MelPlan> plan, std::string_view set = instruction_set());
  ~MelKernel();
  MelKernel(MelKernel&&) noexcept;
  MelKernel& operator=(MelKernel&&) noexcept;

  const MelPlan& plan() const { return *plan_; }
  Scratch make_scratch() const;

  // Writes frames [first_frame, first_frame + n_frames) of the utterance to out [n_frames,
  // columns]. Safe from many threads, each with its own scratch. Throws std::out_of_range if a
  // frame does not exist, is not ready (length -1), or needs samples outside [begin, end). A NaN
  // among a frame's samples makes the frame NaN.
  template <class Sample>
  void frames(const SignalView<Sample>& view, std::int64_t first_frame, std::int64_t n_frames,
              float* out, Scratch& scratch) const;

  // Does the same for many short utterances: frames of several are computed together, and a row is
  // complete only after flush(). Until then view.data and out must stay valid.
  template <class Sample>
  void add(const SignalView<Sample>& view, std::int64_t first_frame, std::int64_t n_frames,
           float* out, Scratch& scratch) const;
  void flush(Scratch& scratch) const;

  // For another backend: returns the samples [frame_length] of frame t that the window is applied
  // to. They are in the view if it has them unchanged, else in scratch until its next use; floats
  // if the front end conditions samples (takes_plain_samples is false), else of type Sample. Sets
  // `energy` to the value of the energy column, if there is one. No frame may be waiting in the
  // scratch. Throws std::out_of_range if a sample is needed that the view lacks.
  template <class Sample>
  const void* frame(const SignalView<Sample>& view, std::int64_t t, Scratch& scratch,
                    float& energy) const;

  // What does the transform, by its transform_name(), if the lanes do not; else "".
  std::string_view transform() const;

 private:
  struct Tables;
  template <class Sample>
  void add_doubles(const SignalView<Sample>& view, std::int64_t first_frame, std::int64_t n_frames,
                   float* out, Scratch& scratch) const;
  void check_scratch(std::size_t size, std::size_t expected) const;
  template <class Sample>
  const void* frame_samples(const SignalView<Sample>& view, std::int64_t start, Scratch& scratch,
                            double& energy) const;
  void transform_one(int lane, int width, const AlignedBuffer& window, Scratch& scratch) const;

  std::shared_ptr<const MelPlan> plan_;
  std::unique_ptr<const Tables> tables_;
};

extern template void MelKernel::frames<std::int16_t>(const SignalView<std::int16_t>&, std::int64_t,
                                                     std::int64_t, float*, Scratch&) const;
extern template void MelKernel::frames<float>(const SignalView<float>&, std::int64_t, std::int64_t,
                                              float*, Scratch&) const;
extern template void MelKernel::add<std::int16_t>(const SignalView<std::int16_t>&, std::int64_t,
                                                  std::int64_t, float*, Scratch&) const;
extern template void MelKernel::add<float>(const SignalView<float>&, std::int64_t, std::int64_t,
                                           float*, Scratch&) const;

extern template const void* MelKernel::frame<std::int16_t>(const SignalView<std::int16_t>&,
                                                           std::int64_t, Scratch&, float&) const;
extern template const void* MelKernel::frame<float>(const SignalView<float>&, std::int64_t,
                                                    Scratch&, float&) const;

}  // namespace melflow
