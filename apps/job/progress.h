// Progress of a job, read from its folder.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "apps/job/job.h"

namespace melflow {

struct JobProgress {
  std::size_t done = 0;                     ///< parts
  std::size_t files = 0, failed_files = 0;  ///< in these
  std::int64_t rows = 0;                    ///< likewise
  std::vector<std::pair<std::size_t, std::string>>
      failed;                        ///< parts whose last try failed, and why
  std::vector<std::string> damaged;  ///< what is wrong with a record
  struct Running {
    std::size_t part = 0;
    std::string worker;
    std::size_t files = 0, of_files = 0;
    bool is_gone = false;  ///< it is known to have ended
  };
  std::vector<Running> running;
  std::optional<double> seconds_left;  ///< where parts are done and workers at others
};

JobProgress progress_of(const Job& job);

}  // namespace melflow
