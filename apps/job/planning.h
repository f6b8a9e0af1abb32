// Makes a job of a pipeline.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "apps/job/job.h"
#include "config/load.h"

namespace melflow {

/// Lists the corpus of a pipeline and writes the job into `folder`, in parts of about `part_bytes` of
/// audio files; recordings are not divided. `warn` gets what there is to be said of pipeline and corpus. Throws ConfigError, and RunError when the corpus cannot be
/// listed, the pipeline cannot be a job, or there is one already.
Job plan_job(const std::string& pipeline, const LoadOptions& options, const std::string& folder,
             std::uint64_t part_bytes, const std::function<void(const std::string&)>& warn);

}  // namespace melflow
