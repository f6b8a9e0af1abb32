// front_ends.h - the table of front ends of known libraries and models: data only.
//
// Out: for each, its nodes as in a YAML pipeline: one a line, in the order of the data.
//
// A new front end is an entry in front_ends.cpp, and a vector in tests/golden/make_front_ends.py.
#pragma once

#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace melflow {

/// One node of a front end: `stage: {option: value, ...}`.
struct FrontEndNode {
  std::string_view text;  // as it is in the table
  std::string_view stage;
  std::vector<std::pair<std::string_view, std::string_view>> options;

  /// The value of an option as written; "" if it is not.
  [[nodiscard]] std::string_view find(std::string_view option) const;
};

struct FrontEnd {
  std::string_view name;
  std::string_view summary;  // what it reproduces, and models that use it
  std::string_view source;   // the library with its version, and the function
  // The nodes. `preset` of mel names an earlier entry, whose options the others change.
  std::string_view text;
  // Whether frames and hop are times, such as 25 ms and 10 ms; else they are numbers of samples at
  // any rate.
  bool has_fixed_times = true;

  [[nodiscard]] std::vector<FrontEndNode> nodes() const;
  /// The rate [Hz] that its node of a stage sets; 0 if it has none, or leaves that to `preset`.
  [[nodiscard]] int sample_rate_of(std::string_view stage) const;
};

/// The help of the option preset_of of mel and samples.
inline constexpr const char* kPresetOfHelp =
    "the class and file that the options are from, with a hash; written where preset is a model's "
    "file";

std::span<const FrontEnd> front_ends();
/// Returns null if there is none of this name.
const FrontEnd* find_front_end(std::string_view name);

}  // namespace melflow
