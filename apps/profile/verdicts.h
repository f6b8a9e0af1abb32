// Checks a run against `expect:`.
#pragma once

#include <string>
#include <vector>

#include "config/expectations.h"
#include "pipeline/report/report.h"

namespace melflow {

struct Verdict {
  enum class Unit { number, bytes, files, share, none };  ///< none: the run lacks this figure
  std::string what;                                       ///< "files_per_second"
  std::string expected;                                   ///< ">= 20000"
  Unit unit = Unit::number;
  double value = 0;
  bool is_met = false;
};

/// Checks the expected figures, in the order of the options. `rows`: of the run's sinks.
std::vector<Verdict> verdicts(const Expectations& expected, const RunReport& report,
                              std::size_t rows);

}  // namespace melflow
