// front_end.h - the parameters of a front end as plain numbers: all that this room knows of one.
//
// In:  settings as kernel_front_end() in stages/device works them out.
// Out: the tables of kernels are made of it (mel_tables.h), with nothing added.
//
// A frame is frame_length samples: conditioned, times the window, transformed with n_fft points,
// its powers summed in bands (or kept as they are), and the logarithm taken.

#pragma once

#include <optional>
#include <vector>

namespace melflow::cuda {

// What is done to the squared magnitude of a bin: nothing, a square root, any power.
enum class PowerKind { square, magnitude, other };

// What is constant for a run; passed to kernels by value.
struct Settings {
  int n_fft = 0;
  int frame_length = 0;
  int n_bins = 0;
  int columns = 0;    // of a row
  int levels_at = 0;  // column of the first band or bin: 1 where the energy comes first
  int n_levels = 0;   // bands or bins
  bool is_mel = true;

  float power_scale = 1.0F;  // takes the scaling of float16 operands back
  float power_offset = 0.0F;
  PowerKind power = PowerKind::square;
  float exponent = 1.0F;      // of the squared magnitude, for PowerKind::other
  bool has_exponent = false;  // bins are not squared magnitudes as they are

  float floor = 0.0F;  // of a band before the log; 0: none
  // With a log, level = factor * ln(max(amin, value + offset)) - shift.
  bool log = false;
  float amin = 0.0F;
  float offset = 0.0F;
  float factor = 1.0F;
  float shift = 0.0F;
};

// Of frames that are conditioned on the device; passed by value.
struct ConditionSettings {
  int frame_length = 0;
  int begin = 0, end = 0;  // the window's place in the frame
  int stride = 0;          // floats from one conditioned frame to the next
  float scale_int16 = 1.0F, scale_float = 1.0F;
  bool remove_dc = false;
  float preemphasis = 0.0F;
};

// Neighbouring bins whose weighted sum is one level.
struct Band {
  int first_bin = 0;
  int count = 0;   // bins; may be 0
  int offset = 0;  // of the band's weights in FrontEnd::weights
};

// What a run computes on devices: the settings, the window and the filterbank.
struct FrontEnd {
  Settings settings;
  std::vector<float> window;  // [frame_length], for samples that are used as they are
  // What samples are multiplied with beside the window, by their type.
  float scale_int16 = 1.0F / 32768.0F, scale_float = 1.0F;
  double largest_sum = 1.0;    // of |sample * window| over a frame of samples at full scale
  std::vector<Band> bands;     // [n_levels], or empty for a spectrogram
  std::vector<float> weights;  // of the bands one after another
  // True: samples are given as they were decoded; false: as conditioned floats.
  bool takes_int16 = true;
  std::optional<ConditionSettings> condition;  // what a kernel does to frames before the window
};

}  // namespace melflow::cuda
