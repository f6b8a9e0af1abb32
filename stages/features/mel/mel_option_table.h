// mel_option_table.h - the one table of all options of a mel front end.
//
// Out: a row per option, in the order of the documentation and of the canonical form.
//
// The rows are the source of the stage's options with their texts, the checked ranges, the settings
// that an output stores, and docs/stages.md, where the scripts in tests/golden find the defaults.
// The default of an option is that of its member in MelOptions{}.

#pragma once

#include <span>

#include "stages/features/mel/mel_options.h"
#include "stages/features/mel/option_table.h"

namespace melflow {

using MelOptionRow = OptionEntry<MelOptions>;

// One row for each option, in the order of the documentation.
std::span<const MelOptionRow> mel_option_table();
template <>
inline std::span<const MelOptionRow> option_table<MelOptions>() {
  return mel_option_table();
}

// The first option whose values need the whole recording; null if none does.
const MelOptionRow* needs_whole(const MelOptions& options);

}  // namespace melflow
