// Plans an update: which rows of the earlier output are still valid, whether they stay in place or
// are copied to a new file, and which are dropped. Also plans a repair, which keeps all rows but
// the damaged ones (RunTask::damaged).
//
// Threads: the run's own; it uses the run's threads to look at the files of the corpus. Lifetime:
// until it has planned; the plan holds the earlier outputs. Errors: RunError that says why an
// output cannot be updated; no file has been changed then.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "stages/output/earlier_rows.h"
#include "stages/output/output_planner.h"

namespace melflow {

class UpdatePlanner final : public OutputPlanner {
 public:
  void look(const PlannedOutput& output) override;
  /// Also notes in the run's KeptItems what the sink has, and gives the source the stamps of files
  /// that are kept. Throws RunError when an output cannot be updated, or too much of it would be
  /// dropped.
  [[nodiscard]] RowPlan plan(const PlannedOutput& output, const OutputSections& sections) override;

 private:
  [[nodiscard]] std::shared_ptr<EarlierRows> take(const PlannedOutput& output,
                                                  const std::string& path);
  void forget_opened(const RunContext& run);

  // Outputs that were opened for the source, by path, until plan(); null for one that is not there.
  std::map<std::string, std::shared_ptr<EarlierRows>> opened_;
};

}  // namespace melflow
