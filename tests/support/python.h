// Runs a test script with the system's Python, which has h5py and numpy.
#pragma once

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <string>

#include "tests/support/source_path.h"

namespace melflow::test {

/// Returns the output, "" if all is right. `script` is below tests/; `arguments` are quoted.
inline std::string python_says(const std::string& script, const std::string& arguments) {
  const std::string command =
      fmt::format("/usr/bin/python3 '{}' {} 2>&1", source_path("tests/" + script), arguments);
  // Python itself is not built with a sanitizer.
  FILE* pipe = popen(("env -u LD_PRELOAD " + command).c_str(), "r");
  REQUIRE(pipe != nullptr);
  std::string out;
  std::array<char, 4096> piece{};
  for (std::size_t n; (n = std::fread(piece.data(), 1, piece.size(), pipe)) > 0;)
    out.append(piece.data(), n);
  const int status = pclose(pipe);
  while (out.ends_with('\n')) out.pop_back();
  if (out.empty() && status != 0) out = fmt::format("python3 ended with {}", WEXITSTATUS(status));
  return out;
}

}  // namespace melflow::test
