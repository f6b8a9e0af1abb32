// front_end.h - the parameters of a front end as plain numbers: all that cuda/ knows of one.
//
// In:  settings as computed by kernel_front_end() in stages/device.
// Out: input of the kernels' tables (mel_tables.h), which add nothing to it.
//
// A frame is frame_length samples: conditioned, multiplied by the window, transformed with n_fft
// points; its powers are summed in bands (or kept) and the logarithm is taken.

#pragma once

#include <limits>
#include <optional>
#include <vector>

namespace melflow::cuda {

// The function of a bin's squared magnitude: identity, square root, or any power.
enum class PowerKind { square, magnitude, other };

// Constants of a run; passed to kernels by value.
struct Settings {
  int n_fft = 0;
  int frame_length = 0;
  int n_bins = 0;
  int columns = 0;    // of a row
  int levels_at = 0;  // column of the first band or bin: 1 if the energy comes first
  int n_levels = 0;   // bands or bins
  bool is_mel = true;

  float power_scale = 1.0F;  // undoes the scaling of float16 operands
  float power_offset = 0.0F;
  float power_floor = 0.0F, power_ceiling = std::numeric_limits<float>::infinity();
  PowerKind power = PowerKind::square;
  float exponent = 1.0F;      // of the squared magnitude, for PowerKind::other
  bool has_exponent = false;  // whether bins differ from squared magnitudes

  float floor = 0.0F;      // of a band before the log; 0: none
  bool piecewise = false;  // level = value/e up to e, ln(value)/e up to e^e, then ln(value)
  // With a log, level = factor * ln(max(amin, value + offset)) - shift.
  bool log = false;
  float amin = 0.0F;
  float offset = 0.0F;
  float factor = 1.0F;
  float shift = 0.0F;
};

// Settings for frames that are conditioned on the device; passed by value.
struct ConditionSettings {
  int frame_length = 0;
  int begin = 0, end = 0;  // the window's position in the frame
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

// The computation of a run on devices: the settings, the window and the filterbank.
struct FrontEnd {
  Settings settings;
  std::vector<float> window;  // [frame_length], for unconditioned samples
  // Factors of the samples besides the window, by type.
  float scale_int16 = 1.0F / 32768.0F, scale_float = 1.0F;
  double largest_sum = 1.0;    // of |sample * window| over a frame of samples at full scale
  std::vector<Band> bands;     // [n_levels], or empty for a spectrogram
  std::vector<float> weights;  // of the bands one after another
  // Whether samples are passed as decoded, not as conditioned floats.
  bool takes_int16 = true;
  std::optional<ConditionSettings> condition;  // set if a kernel conditions frames
};

}  // namespace melflow::cuda
