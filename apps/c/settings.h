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

// A stage of the JSON: its options with the texts of their values.
struct SettingsNode {
  struct Value {
    std::string text;        // as in YAML
    bool is_quoted = false;  // a text in the JSON
  };
  struct Option {
    std::string name;
    std::vector<Value> values;
    bool is_list = false;
  };
  std::string stage;
  std::vector<Option> options;

  // The text of an option; `otherwise` if it is not set.
  [[nodiscard]] std::string text(std::string_view name, std::string otherwise = "") const;
  // {"stage": "resample", "rate": 16000, "quality": "high"}
  [[nodiscard]] std::string json() const;
};

// Throws Failure.
std::vector<SettingsNode> nodes_of_json(std::string_view text);

// What resample does with samples of another rate.
struct RateOptions {
  std::string quality = "high", length = "round";
};

struct FrontSettings {
  MelOptions mel;
  // Whether frames and hop are times; else they are numbers of samples at any rate.
  bool has_fixed_times = true;
  std::vector<std::pair<std::string, RowStepOptions>> steps;  // by their stages
  RateOptions resampling;
  std::int64_t window = 0;  // shorter recordings are filled up to so many samples; 0: not
  std::vector<std::string> before, after;  // recorded nodes around these, as JSON
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
  std::string needs_whole;  // the option that needs the whole recording, and what to set; "": none
};

// Checks the settings and makes the front end.
MadeFront make_front(FrontSettings settings);

}  // namespace melflow::c_interface
