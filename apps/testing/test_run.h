// One test of a pipeline: its input, the plan with it, the run, all below one folder.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "config/load.h"
#include "config/pipeline_tests.h"

namespace melflow {

struct TestOptions {
  std::string pipeline;          ///< a file
  std::vector<Assignment> sets;  ///< of all tests; a test's own come after them
  std::vector<Assignment> vars;  ///< likewise
  std::optional<int> workers;
};

/// Runs a test with all that it makes below `scratch`, an empty folder. Returns what is not as
/// expected, a line each. Throws ConfigError where the pipeline or the input cannot be run, and
/// RunError where the run could not begin.
std::vector<std::string> run_test(const PipelineTest& test, const TestOptions& options,
                                  const std::filesystem::path& scratch);

}  // namespace melflow
