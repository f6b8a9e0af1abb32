// Tells the stages of a run whether it updates an earlier output.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "pipeline/stage/run_context.h"

namespace melflow {

/// How a sink treats the output of an earlier run.
enum class Update {
  none,    ///< makes a new output
  append,  ///< rows that are still valid stay in place, new ones are appended
  compact  ///< makes a new file in the order of the source, copying rows that are still valid
};

/// Sets the kind of update; to be called before the run.
inline void set_update(RunServices& services, Update update) {
  services.add(std::make_shared<Update>(update));
}
inline Update update_of(const RunContext& run) {
  const auto update = run.services.find<Update>();
  return update ? *update : Update::none;
}

/// Where the caller adds a Repair to the services of an update, the update keeps the rows of every
/// file that was ok, even if the recording has changed or is gone, except for damaged ones; it may
/// drop none.
struct Repair {
  std::map<std::string, std::vector<std::size_t>> damaged;  ///< entries, ascending, of each output
};

/// A preview of an update. Where the caller adds one to the services of a run, its sinks fill it
/// in, write nothing, and close every file: as ok where its rows would stay in all outputs, else as
/// not run, with the reason of the first output that lacks its rows.
struct UpdatePreview {
  struct Output {
    std::string path;
    bool is_there = false;  ///< false: all files would be computed
    bool in_place = false;  ///< whether new rows would be appended; else all rows would be copied
    std::size_t kept_files = 0;
    std::size_t dropped_files = 0;  ///< files that have rows there and are gone
    std::int64_t dropped_rows = 0;
    std::vector<std::string> dropped;  ///< their paths; of very many the first
    std::string refusal;               ///< why the update would be refused; "": it would begin
    /// The files to compute, and why: "new", "changed (size)" or the earlier outcome.
    std::map<std::size_t, std::string> to_compute = {};
  };
  std::vector<Output> outputs;  ///< empty where the run was stopped before it had looked at all
  std::map<std::size_t, std::string> splits;  ///< of those files to compute that have a split
};
inline bool is_preview(const RunContext& run) {
  return run.services.find<UpdatePreview>() != nullptr;
}

}  // namespace melflow
