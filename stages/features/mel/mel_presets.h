// mel_presets.h - the front ends of well-known libraries and models, option by option.
//
// In:  a preset's name.
// Out: MelOptions with everything set, and where they come from.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "stages/features/mel/mel_options.h"

namespace melflow {

struct MelPreset {
  std::string_view name;
  std::string_view summary;  // the function whose result it is
  MelOptions options;
  // Its frames are 25 ms every 10 ms, say, and not so many samples at any rate.
  bool has_fixed_times = true;
};

// All of them, in the order of the documentation.
std::span<const MelPreset> mel_presets();
const MelPreset* find_preset(std::string_view name);

}  // namespace melflow
