// What code that is to fail says.
#pragma once

#include <functional>
#include <string>

#include "pipeline/base/problem.h"

namespace melflow::test {

/// Of the RunError that `what` throws; "" where it throws none.
inline std::string complaint(const std::function<void()>& what) {
  try {
    what();
  } catch (const RunError& e) {
    return e.what();
  }
  return "";
}

}  // namespace melflow::test
