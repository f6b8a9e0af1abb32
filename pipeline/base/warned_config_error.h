// A ConfigError with the warnings that accompany it: one may be the cause, or the next thing to
// fix.
#pragma once

#include <utility>
#include <vector>

#include "pipeline/base/problem.h"

namespace melflow {

class WarnedConfigError : public ConfigError {
 public:
  WarnedConfigError(Problems problems, std::vector<Problem> warnings)
      : ConfigError(std::move(problems)), warnings_(std::move(warnings)) {}
  [[nodiscard]] const std::vector<Problem>& warnings() const { return warnings_; }

 private:
  std::vector<Problem> warnings_;
};

/// The warnings that accompany an error; empty if it has none.
inline std::vector<Problem> warnings_beside(const ConfigError& error) {
  const auto* warned = dynamic_cast<const WarnedConfigError*>(&error);
  return warned == nullptr ? std::vector<Problem>{} : warned->warnings();
}

}  // namespace melflow
