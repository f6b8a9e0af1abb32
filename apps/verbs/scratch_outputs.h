// Sends what a pipeline writes into folders of its own, beside its outputs and so on the same disks,
// and removes them: for runs that are made only to be measured. A cache of decoded audio that is
// there is used; one that is not is filled by every such run, and gone after it.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "pipeline/plan/plan.h"

namespace melflow {

class ScratchOutputs {
 public:
  /// For all nodes of the plan that make files or have a cache. Throws RunError where such a node has no option
  /// `path`, or where a folder cannot be made.
  explicit ScratchOutputs(const Plan& plan);
  ~ScratchOutputs();
  ScratchOutputs(const ScratchOutputs&) = delete;
  ScratchOutputs& operator=(const ScratchOutputs&) = delete;

  /// The options that send the outputs there, as --set takes them.
  [[nodiscard]] const std::vector<std::string>& sets() const { return sets_; }
  /// Removes what was written, for the next run; `but_caches`: caches of decoded audio stay.
  void clear(bool but_caches = false) const;

 private:
  void add_cache(const PlanNode& node);
  void remove();

  std::vector<std::filesystem::path> folders_;
  std::vector<std::filesystem::path> caches_;  // those of folders_ with a cache
  std::vector<std::string> sets_;
};

}  // namespace melflow
