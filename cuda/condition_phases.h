// condition_phases.h - prepares the samples of a frame for the window, in phases between barriers:
// scale, removal of the mean, pre-emphasis of the frame.
//
// In:  samples of a frame, as decoded.
// Out: the frame as floats [frame_length], as the Conditioner of the mel plan makes it; 0 outside
//      the window.
//
// A warp works on a frame. The mean is needed before the first sample can be written, and each
// sample needs the previous one: so both phases read the samples, the second time from a cache.
//
//   sum     of a lane's samples                  -> shared
//   write   mean, pre-emphasis                   -> frame

#pragma once

#include "cuda/host_device.h"
#include "cuda/mel_tables.h"

namespace melflow::cuda {

struct Condition {
  static constexpr int lanes = 32;

  // `sums` [lanes], shared. Double, as on the host: an offset may far exceed the signal.
  template <class Sample>
  static MELFLOW_HD void sum(int lane, const ConditionSettings& s, const Sample* samples,
                             double* sums) {
    const float scale = scale_of(s, samples);
    double sum = 0.0;
    for (int i = s.begin + lane; i < s.end; i += lanes)
      sum += static_cast<double>(static_cast<float>(samples[i]) * scale);
    sums[lane] = sum;
  }

  template <class Sample>
  static MELFLOW_HD void write(int lane, const ConditionSettings& s, const Sample* samples,
                               const double* sums, float* frame) {
    const float scale = scale_of(s, samples);
    float mean = 0.0F;
    if (s.remove_dc) {
      double total = 0.0;
      for (int k = 0; k < lanes; ++k) total += sums[k];
      mean = static_cast<float>(total / (s.end - s.begin));
    }
    for (int i = lane; i < s.frame_length; i += lanes) {
      float value = 0.0F;
      if (i >= s.begin && i < s.end) {
        value = static_cast<float>(samples[i]) * scale - mean;
        // The first sample has no predecessor and uses itself.
        const int before = i > s.begin ? i - 1 : i;
        if (s.preemphasis > 0.0F)
          value -= s.preemphasis * (static_cast<float>(samples[before]) * scale - mean);
      }
      frame[i] = value;
    }
  }

 private:
  static MELFLOW_HD float scale_of(const ConditionSettings& s, const std::int16_t*) {
    return s.scale_int16;
  }
  static MELFLOW_HD float scale_of(const ConditionSettings& s, const float*) {
    return s.scale_float;
  }
};

}  // namespace melflow::cuda
