// Tells the sinks whether to resume an interrupted run.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "pipeline/stage/run_context.h"

namespace melflow {

struct Resume {
  enum class When {
    automatic,  ///< resume where possible, else start from the beginning
    never,      ///< start from the beginning, and remove what an interrupted run left
    required    ///< fail the run where there is nothing to resume
  };
  When when = When::automatic;
  std::function<void(const std::string&)> tell;  ///< reports what was found; may be empty
  /// Ends the program, saying that a decoder hangs; where empty, a hanging decoder is left alone.
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
