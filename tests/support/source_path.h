#pragma once

#include <string>

namespace melflow::test {

/// Returns the path of a file in the source tree, such as "tests/golden/presets.json".
std::string source_path(const std::string& relative);

}  // namespace melflow::test
