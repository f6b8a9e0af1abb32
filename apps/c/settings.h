// The settings of a front end: from a preset or from JSON, without the framework.
//
// In:  a preset's name, or the JSON of melflow.Features.to_json().
// Out: options of mel and of the steps after it, checked; their fingerprint; a RowFront.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "stages/features/mel/row_steps.h"
#include "stages/features/mel/row_stream.h"

namespace melflow::c_interface {

struct FrontSettings {
  std::string name;  // "preset whisper", for messages
  MelOptions mel;
  bool has_fixed_times = true;  // else frame and hop are samples at any rate
  std::vector<std::pair<std::string, RowStepOptions>> steps;  // by their stages
  std::string resampling = "high";                            // quality, if another rate comes
  std::int64_t window = 0;    // shorter recordings are filled up to so many samples; 0: not
  std::string only_in_graph;  // the first stage of samples that a RowFront cannot have; "": none
};

// Throw Failure.
FrontSettings settings_of_preset(std::string_view name);
FrontSettings settings_of_json(std::string_view text);

struct MadeFront {
  std::shared_ptr<const RowFront> rows;
  std::string fingerprint;
  std::uint64_t noise_key = 0;
  double row_seconds = 0;
  const char* whole = nullptr;  // what needs the whole recording, and what to set instead
  std::string whole_option;     // "" if nothing does
};

// Checks the settings and makes the front end.
MadeFront make_front(FrontSettings settings);

}  // namespace melflow::c_interface
