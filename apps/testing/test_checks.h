// Compares the results of a test's run with its expectations.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "config/pipeline_tests.h"
#include "pipeline/report/report.h"
#include "pipeline/stage/ledger.h"

namespace melflow {

/// The results of a finished run.
struct TestedRun {
  RunReport report;
  std::vector<Remark> remarks;
  /// The folder of each output, by its node's name; a folder has nothing else in it.
  std::vector<std::pair<std::string, std::filesystem::path>> outputs;
};

/// Returns one line per difference; none where everything is as expected. `folder`: the base of
/// relative paths of .npy files.
std::vector<std::string> check_test(const ExpectedRun& expected, const TestedRun& run,
                                    const std::filesystem::path& folder);

}  // namespace melflow
