// Compares the results of a test's run with what the test expects.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "config/pipeline_tests.h"
#include "pipeline/report/report.h"
#include "pipeline/stage/ledger.h"

namespace melflow {

/// A run that is over.
struct TestedRun {
  RunReport report;
  std::vector<Remark> remarks;
  /// The folder of each output, by its node's name; nothing else is in it.
  std::vector<std::pair<std::string, std::filesystem::path>> outputs;
};

/// One line for everything that is not as expected; none where all is. `folder`: where the paths of
/// .npy files begin.
std::vector<std::string> check_test(const ExpectedRun& expected, const TestedRun& run,
                                    const std::filesystem::path& folder);

}  // namespace melflow
