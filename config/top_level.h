// The top-level options of a configuration, besides `graph`. This description serves reading, help
// and the schema for editors.
#pragma once

#include <optional>

#include "config/expectations.h"
#include "pipeline/plan/plan.h"

namespace melflow {

/// The `version` that this program reads.
inline constexpr int kConfigVersion = 1;
inline constexpr const char* kGraphKey = "graph";
inline constexpr const char* kTestsKey = "tests";
inline constexpr const char* kPluginsKey = "plugins";

inline constexpr OtherName kOtherMemoryNames[] = {
    {"ram", "", "host"},   {"cpu", "", "host"},   {"limit", "", "host"},  {"max", "", "host"},
    {"total", "", "host"}, {"gpu", "", "device"}, {"cuda", "", "device"}, {"vram", "", "device"},
};
inline constexpr OtherValue kOtherMemoryValues[] = {
    {"host", "*%", "write a size: a share of the machine's memory is not taken"},
    {"host", "auto", "write a size, or leave host out for the default"},
};

struct MemoryOptions {
  Bytes host = GraphSpec{}.host_memory;
  Bytes pinned = GraphSpec{}.pinned_memory;
  Bytes device = GraphSpec{}.device_memory;

  void describe(Schema& s) {
    s.other_names(kOtherMemoryNames);
    s.other_values(kOtherMemoryValues);
    s.field("host", host, "most memory that all items in the run may take at the same time")
        .tuning();
    s.field(
         "pinned", pinned,
         "most page-locked memory that all mel nodes on graphics processors may take, in addition "
         "to host")
        .tuning();
    s.field("device", device, "most memory that mel nodes may take on each graphics processor")
        .tuning();
  }
};

inline constexpr OtherName kOtherTopLevelNames[] = {
    {"nodes", "", kGraphKey},
    {"pipeline", "", kGraphKey},
    {"stages", "", kGraphKey},
    {"num_workers", "PyTorch", "workers"},
    {"n_jobs", "scikit-learn", "workers"},
    {"threads", "", "workers"},
    {"output", "", kGraphKey, "the output is the option path of a node in it"},
    {"path", "", kGraphKey, "the output is the option path of a node in it"},
};
inline constexpr OtherValue kOtherTopLevelValues[] = {
    {"workers", "all", "write auto (or 0) for a thread for each core"},
    {"workers", "max", "write auto (or 0) for a thread for each core"},
    {"memory", "*", "write memory: {host: VALUE}, or --set memory.host=VALUE"},
};

struct TopLevelOptions {
  std::optional<int> version;
  std::optional<MemoryOptions> memory;
  CountOrShare max_failures;
  std::optional<int> workers;
  std::optional<Expectations> expect;
  std::vector<std::string> plugins;

  void describe(Schema& s) {
    s.other_names(kOtherTopLevelNames);
    s.other_values(kOtherTopLevelValues);
    s.field("version", version, "version of the configuration's format; required")
        .range(kConfigVersion, kConfigVersion);
    s.group("memory", memory, "memory budgets of the run");
    s.field("max_failures", max_failures,
            "number or share of files that may fail; more end the run; not set: no limit");
    s.field(
         "workers", workers,
         "number of threads that compute; 0 or auto: one per core; at most four per core, or eight "
         "where that is more")
        .range(0, 1024)
        .tuning();
    s.group("expect", expect,
            "what the run should be like; checked at its end, with an exit status of its own");
    s.field(kPluginsKey, plugins,
            "shared libraries with further stages, which are loaded before the graph is read");
  }
};

}  // namespace melflow
