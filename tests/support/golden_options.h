// Converts options of the golden files (tests/golden), which have the names of the mel stage.
#pragma once

#include <nlohmann/json.hpp>

#include "stages/features/mel/mel_options.h"

namespace melflow::test {

/// Reads options as in a configuration: {"preset": "kaldi", "n_mels": 40, ...}. Throws
/// std::invalid_argument that says what is wrong.
MelOptions options_of(const nlohmann::json& options);

}  // namespace melflow::test
