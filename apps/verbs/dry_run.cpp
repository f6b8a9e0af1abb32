#include "apps/verbs/dry_run.h"

#include <fmt/format.h>

#include "apps/exit_codes.h"
#include "apps/report/format.h"
#include "apps/report/printing.h"
#include "apps/report/report_text.h"
#include "pipeline/base/problem.h"
#include "stages/output/row_sink.h"
#include "stages/run_task.h"

namespace melflow {

int DryRun::exit_code() const {
  return !problem().empty() ? kRunFailed : is_whole() ? kDone : kStopped;
}

int DryRun::print(std::FILE* out) const {
  put(stderr, warnings_text(report, runner->plan()));
  if (is_whole() && out != nullptr) put(out, plan_text(plans, source(), kShownRemarks));
  const int code = exit_code();
  if (code == kRunFailed && report.ending == Ending::failed) complain(report.error);
  for (const RowPlan& plan : plans)
    if (report.ending != Ending::failed && !plan.refusal.empty()) complain(plan.refusal);
  if (code == kStopped) complain("stopped before all files were checked");
  return code;
}

DryRun dry_run(Plan plan, const Watch& watch) {
  for (const PlanNode& node : plan.nodes)
    if (node.info->traits.kind == StageKind::sink &&
        dynamic_cast<const RowSink*>(node.stage.get()) == nullptr)
      throw RunError(fmt::format("--dry-run: the output of {} ({}) cannot be updated", node.name,
                                 node.info->name));
  const auto plans = std::make_shared<RowPlans>();
  plan.services.find_or_make<RunTask>()->plans = plans;
  DryRun out{std::make_unique<Runner>(std::move(plan)), {}, {}};
  out.report = run_watched(*out.runner, watch).report;
  out.plans = std::move(*plans);
  return out;
}

}  // namespace melflow
