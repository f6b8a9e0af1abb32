// What is said of a wrong configuration.
#pragma once

#include <string>

#include "pipeline/base/problem.h"

namespace melflow::test {

/// The message of the ConfigError that f() throws; "" where it throws none.
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
