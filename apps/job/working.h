// A worker: makes parts of a job until none is left.
#pragma once

#include <cstddef>
#include <cstdio>
#include <optional>

#include "apps/job/claims.h"
#include "apps/job/job.h"

namespace melflow {

struct WorkOptions {
  std::optional<int> workers;  ///< threads
  double stop_after = 0;       ///< [s]; 0: never
  double patience = 60;  ///< [s]; after which a worker that says nothing new is taken for gone
  bool quiet = false;
};

struct Worked {
  std::size_t made = 0, failed = 0;  ///< parts, by this worker
  bool is_stopped = false;           ///< before the end
};

/// Throws RunError when this program would make other bytes than were planned.
Worked work_on(const Job& job, const WorkOptions& options);

}  // namespace melflow
