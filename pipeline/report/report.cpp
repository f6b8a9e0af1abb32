#include "pipeline/report/report.h"

#include <algorithm>

#include <fmt/format.h>

#include "pipeline/report/stage_meter.h"

namespace melflow {

ServiceReport service_report(const DurationHistogram& durations) {
  return {.calls = durations.count(),
          .p50 = durations.percentile(0.5),
          .p90 = durations.percentile(0.9),
          .p99 = durations.percentile(0.99),
          .greatest = durations.greatest()};
}

void name_slowest(RunReport& report, const std::function<std::string(std::size_t)>& name) {
  for (const StageReport& s : report.stages)
    for (const SlowVisit& v : s.slowest) report.slowest.push_back({"", s.name, v});
  std::stable_sort(
      report.slowest.begin(), report.slowest.end(),
      [](const SlowFile& a, const SlowFile& b) { return a.visit.seconds > b.visit.seconds; });
  report.slowest.resize(std::min(report.slowest.size(), StageMeter::kSlowest));
  for (SlowFile& f : report.slowest) f.name = name(f.visit.index);
}

void check_accounts(RunReport& report) {
  const Ledger::Counts& c = report.counts;
  if (c.ok + c.skipped + c.failed + c.not_run == c.found) return;
  report.ending = Ending::failed;
  report.error = fmt::format(
      "the accounts do not balance (a bug in melflow): {} ok + {} skipped + {} failed + {} "
      "not run, but {} found",
      c.ok, c.skipped, c.failed, c.not_run, c.found);
}

}  // namespace melflow
