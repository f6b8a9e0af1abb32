// A test whose requirements this machine lacks reports that and returns. The program then ends with
// kSkipped, unless something failed, and CTest lists its entry as skipped, not as passed.
#pragma once

#include <string>

namespace melflow::test {

inline constexpr int kSkipped = 77;  // SKIP_RETURN_CODE in tests/CMakeLists.txt

void skip(const std::string& why);

}  // namespace melflow::test
