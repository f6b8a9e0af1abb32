// Runs one test of a pipeline: its input, the plan with it and the run, all below one folder.
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
  std::vector<Assignment> sets;  ///< for all tests; a test's own are applied after them
  std::vector<Assignment> vars;  ///< for all tests
  std::optional<int> workers;
};

/// Runs a test, with all its files below `scratch`, an empty folder. Returns a line per unmet
/// expectation. Throws ConfigError where the pipeline or the input is invalid, and RunError where
/// the run could not begin.
std::vector<std::string> run_test(const PipelineTest& test, const TestOptions& options,
                                  const std::filesystem::path& scratch);

}  // namespace melflow
