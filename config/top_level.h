// The top-level options of a configuration, beside `graph`. This description serves reading, help
// and the schema for editors.
#pragma once

#include <optional>

#include "pipeline/plan.h"

namespace melflow {

/// The `version` this program reads.
inline constexpr int kConfigVersion = 1;
inline constexpr const char* kGraphKey = "graph";

struct MemoryOptions {
  Bytes host = GraphSpec{}.host_memory;
  Bytes pinned = GraphSpec{}.pinned_memory;
  Bytes device = GraphSpec{}.device_memory;

  void describe(Schema& s) {
    s.field("host", host, "all that the items under way may take at the same time").tuning();
    s.field("pinned", pinned,
            "page-locked memory of all mel nodes on graphics processors, beside host")
        .tuning();
    s.field("device", device, "memory that such nodes take on each of them").tuning();
  }
};

inline constexpr OtherName kOtherTopLevelNames[] = {
    {"nodes", "", kGraphKey},
    {"pipeline", "", kGraphKey},
    {"stages", "", kGraphKey},
    {"num_workers", "PyTorch", "workers"},
    {"n_jobs", "scikit-learn", "workers"},
    {"threads", "", "workers"},
};

struct TopLevelOptions {
  std::optional<int> version;
  std::optional<MemoryOptions> memory;
  CountOrShare max_failures;
  std::optional<int> workers;

  void describe(Schema& s) {
    s.other_names(kOtherTopLevelNames);
    s.field("version", version, "the version of this format; required")
        .range(kConfigVersion, kConfigVersion);
    s.group("memory", memory, "budgets");
    s.field("max_failures", max_failures,
            "more failed files than this end the run; no limit when not set");
    s.field(
         "workers", workers,
         "threads that compute; 0 or auto: as many as there are cores; a run takes at most four a "
         "core, or eight")
        .range(0, 1024)
        .tuning();
  }
};

}  // namespace melflow
