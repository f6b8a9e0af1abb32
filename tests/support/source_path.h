#pragma once

#include <string>

namespace melflow::test {

/// A file of the source tree, by its path below the root: "tests/golden/presets.json".
std::string source_path(const std::string& relative);

}  // namespace melflow::test
