// mel_signal.h - prepares the samples of one frame, before the window.
//
// In:  SignalView, samples [begin, end) of an utterance, int16 or float, mono.
// Out: the frame [frame_length], padded at the utterance's ends: its samples in their own type
//      (gather), or as float or double after scale, dither, pre-emphasis and removal of the mean
//      (Conditioner).
//
// The result depends on the frame's samples and, with dither, on their positions in the file; not
// on the block or the batch they came in.
#pragma once

#include <cstdint>
#include <limits>

#include "stages/features/mel/mel_plan.h"

namespace melflow {

template <class Sample>
struct SignalView {
  const Sample* data = nullptr;  // data[0] is sample `begin` of the utterance
  std::int64_t begin = 0;
  std::int64_t end = 0;
  // Samples of the whole utterance; -1 while unknown: only ready frames can be computed.
  std::int64_t length = -1;
  // Dither: the file's key, and the position of the utterance's first sample in the file.
  std::uint64_t noise_key = 0;
  std::int64_t noise_at = 0;
};

constexpr float kInt16Scale = 1.0F / 32768.0F;  // int16 counts as value / 32768

// The values outside an utterance: `zeros` zeros at either end, and beyond them those that `mode`
// makes of the utterance with its zeros.
struct Padding {
  MelOptions::PadMode mode = MelOptions::PadMode::reflect;
  std::int64_t zeros = 0;  // [samples]
  std::int64_t ramp = 0;   // [samples] of padding with linear_ramp, else 0
  // [samples] behind the utterance from which on there are zeros, whatever the mode.
  std::int64_t silent_from = kNever;
  static constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max() / 4;
  bool is_plain = true;  // only the mode matters
};
Padding padding_of(const MelPlan& plan);

// Copies the n samples from `start` on unchanged, padded outside the utterance; not with
// linear_ramp, whose values are not samples. Throws std::out_of_range if a sample is needed that
// the view lacks.
template <class Sample>
void gather(const SignalView<Sample>& view, std::int64_t start, std::int64_t n, const MelPlan& plan,
            Sample* out);

// Standard normal noise for the samples of the file `key`, by a counter-based generator: a sample's
// value depends on seed, key and index, not on the order of calls. Keeps the last pair of values,
// which makes neighbours fast.
class Noise {
 public:
  Noise(std::int64_t seed, std::uint64_t key);
  // The noise of the sample at `index` of the file, from 0 on.
  double at(std::int64_t index);

 private:
  std::uint64_t base_;
  std::int64_t pair_ = -1;
  double values_[2] = {};
};

// Scale, dither, pre-emphasis, removal of the mean and raw energy of frames. Safe from many
// threads.
class Conditioner {
 public:
  explicit Conditioner(const MelPlan& plan);

  // False if a frame is its samples times a factor, which the window includes.
  bool needed() const { return needed_; }
  // Writes the frame that starts at sample `start` to out [frame_length]; work [frame_length].
  // Returns the sum of squares before the frame's pre-emphasis if the raw energy is requested, else
  // 0. Throws std::out_of_range if a sample is needed that the view lacks.
  template <class Sample, class Real>
  double frame(const SignalView<Sample>& view, std::int64_t start, Real* work, Real* out) const;

 private:
  template <class Sample, class Real>
  void signal(const SignalView<Sample>& view, std::int64_t start, Real* out) const;
  template <class Real, class At>
  Real first_sample(const At& at, bool is_alone) const;

  bool needed_ = false;
  int length_ = 0;
  int window_begin_ = 0, window_end_ = 0;
  Padding padding_;
  double scale_ = 1.0;
  double dither_ = 0.0;
  std::int64_t seed_ = 0;
  double signal_preemphasis_ = 0.0;
  MelOptions::PreemphasisFirst first_ = MelOptions::PreemphasisFirst::keep;
  int dropped_ = 0;
  double frame_preemphasis_ = 0.0;
  bool remove_dc_ = false;
  bool raw_energy_ = false;
};

// True: the window is applied to unchanged samples. False: samples must be conditioned before it
// (dither, pre-emphasis, removal of the mean, raw energy, a ramp at the ends), and are then floats
// that include input_scale.
bool takes_plain_samples(const MelPlan& plan);
// True: samples must be conditioned, and that needs only the frame's own samples (scale, removal of
// the mean, pre-emphasis of the frame). False if they need no conditioning, or with noise, a ramp
// or pre-emphasis of the signal.
bool is_conditioned_by_frame(const MelPlan& plan);

}  // namespace melflow
