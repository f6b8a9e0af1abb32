// A run that updates an earlier output, as whoever starts it tells the stages.
#pragma once

#include <memory>

#include "pipeline/run_context.h"

namespace melflow {

/// What a sink does where an earlier run left its output.
enum class Update {
  none,    ///< an output is made from nothing
  append,  ///< what is still right stays where it is, what is new comes behind it
  compact  ///< what is still right is taken over, everything in the order of the source
};

/// Before the run.
inline void set_update(RunServices& services, Update update) {
  services.add(std::make_shared<Update>(update));
}
inline Update update_of(const RunContext& run) {
  const auto update = run.services.find<Update>();
  return update ? *update : Update::none;
}

}  // namespace melflow
