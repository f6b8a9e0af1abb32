// Captures the messages about a wrong configuration.
#pragma once

#include <string>

#include "pipeline/base/problem.h"

namespace melflow::test {

/// Returns the message of the ConfigError that f() throws; "" if it throws none.
template <class F>
std::string problems_in(F&& f) {
  try {
    static_cast<void>(f());
  } catch (const ConfigError& e) {
    return e.what();
  }
  return {};
}

}  // namespace melflow::test
