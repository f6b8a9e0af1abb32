// Tells the sinks whether to resume an interrupted run.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "pipeline/stage/run_context.h"

namespace melflow {

struct Resume {
  enum class When {
    automatic,  ///< where it can; else from the beginning
    never,      ///< from the beginning, and what an interrupted run left is removed
    required    ///< the run fails where there is nothing to go on with
  };
  When when = When::automatic;
  std::function<void(const std::string&)> tell;  ///< says what was found; may be empty
  /// Ends the program, since a decoder hangs, and says so; empty: one that hangs is left to itself.
  std::function<void(const std::string&)> leave = {};
};

/// To be called before the run.
inline void set_resume(RunServices& services, Resume resume) {
  services.add(std::make_shared<Resume>(std::move(resume)));
}
inline Resume resume_of(const RunContext& run) {
  const auto resume = run.services.find<Resume>();
  return resume ? *resume : Resume{};
}

}  // namespace melflow
