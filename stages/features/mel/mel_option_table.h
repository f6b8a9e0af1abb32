// mel_option_table.h - the one table of all options of a mel front end.
//
// Out: a row per option, in the order of the documentation and of the canonical form.
//
// The rows are the source of the stage's options with their texts, the checked ranges, the settings
// that an output stores, and docs/stages.md, where the scripts in tests/golden find the defaults.
// The default of an option is that of its member in MelOptions{}.

#pragma once

#include <limits>
#include <span>
#include <string>
#include <string_view>

#include "stages/features/mel/mel_options.h"

namespace melflow {

// The range of a number, or of each number in a list. No range includes NaN.
struct MelRange {
  double lowest = -std::numeric_limits<double>::infinity();
  double highest = std::numeric_limits<double>::infinity();
  bool excludes_lowest = false;

  [[nodiscard]] bool has(double value) const {
    return (excludes_lowest ? value > lowest : value >= lowest) && value <= highest;
  }
};

struct MelOptionRow {
  // Conditions on other options without which this one has no effect: as text, and as a test.
  struct Needs {
    std::string_view what;
    bool (*are_met)(const MelOptions&) = nullptr;  // null: it always has an effect
  };

  // When the values need the whole recording, so that no row is final before its end, and what can
  // be set instead where rows are wanted earlier (a stream); null: never.
  struct Whole {
    bool (*is_needed)(const MelOptions&) = nullptr;
    std::string_view instead;
  };

  std::string_view name;
  MelOptions::Member member;
  std::string_view what;
  std::string_view unit;    // "" for none
  std::string_view effect;  // the effect of its values, and what applies if it is not set
  MelRange range = {};
  Needs needs = {};
  // Whether the output records the option although it has an effect; null: always. An option at the
  // value that older outputs imply is omitted, so that they keep their fingerprint.
  bool (*is_recorded)(const MelOptions&) = nullptr;
  Whole whole = {};

  // "length of the analysis window [samples]; not set: n_fft"
  [[nodiscard]] std::string text() const;
  // Whether the canonical form of `options` records this option.
  [[nodiscard]] bool counts(const MelOptions& options) const;
};

// One row for each option, in the order of the documentation.
std::span<const MelOptionRow> mel_option_table();

// The first option whose values need the whole recording; null if none does.
const MelOptionRow* needs_whole(const MelOptions& options);

}  // namespace melflow
