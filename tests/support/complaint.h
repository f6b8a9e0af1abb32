// Captures the error message of code that should fail.
#pragma once

#include <functional>
#include <string>

#include "pipeline/base/problem.h"

namespace melflow::test {

/// Returns the message of the RunError that `what` throws; "" if it throws none.
inline std::string complaint(const std::function<void()>& what) {
  try {
    what();
  } catch (const RunError& e) {
    return e.what();
  }
  return "";
}

}  // namespace melflow::test
