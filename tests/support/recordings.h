// Real recordings from which golden files were computed; tests/support/fetch_audio.sh fetches them.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <vector>

namespace melflow::test {

using Samples = std::vector<std::int16_t>;

/// Reads {package, path, sha256, sample_rate, samples} below the folder MELFLOW_TEST_AUDIO. Throws
/// when the file is missing or different.
Samples read_recording(const nlohmann::json& recording);

}  // namespace melflow::test
