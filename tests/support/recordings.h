// Real recordings that golden files were computed from; tests/support/fetch_audio.sh brings them.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <vector>

namespace melflow::test {

using Samples = std::vector<std::int16_t>;

/// {package, path, sha256, sample_rate, samples} below the folder MELFLOW_TEST_AUDIO. Throws when
/// it is not there or not the same file.
Samples read_recording(const nlohmann::json& recording);

}  // namespace melflow::test
