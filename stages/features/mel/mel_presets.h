// mel_presets.h - the front ends of stages/front_ends.h that have a stage mel, option by option.
//
// In:  a preset's name.
// Out: MelOptions with everything set, and their source.
#pragma once

#include <span>
#include <string_view>

#include "stages/features/mel/mel_options.h"

namespace melflow {

struct MelPreset {
  std::string_view name;
  std::string_view summary;  // the function that it reproduces
  MelOptions options;
  // True: frame and hop are times (such as 25 ms and 10 ms) at any sample rate; false: they are
  // numbers of samples.
  bool has_fixed_times = true;
  int window_seconds = 0;  // the model takes only windows of this length; 0: any length
};

// All presets, in the order of the documentation.
std::span<const MelPreset> mel_presets();
// Returns null if no preset has this name.
const MelPreset* find_preset(std::string_view name);

}  // namespace melflow
