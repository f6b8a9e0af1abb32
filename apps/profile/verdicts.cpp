#include "apps/profile/verdicts.h"

#include "apps/profile/figures.h"

namespace melflow {

std::vector<Verdict> verdicts(const Expectations& expected, const RunReport& report,
                              std::size_t rows) {
  using Unit = Verdict::Unit;
  std::vector<Verdict> out;
  const auto judge = [&out](const char* what, const auto& bound, Unit unit, double value) {
    if (bound) out.push_back({what, bound->text, unit, value, bound->is_met_by(value)});
  };
  const auto judge_files = [&](const char* what, const std::optional<CountBound>& bound,
                               std::size_t files) {
    const auto found = static_cast<double>(report.counts.found);
    const auto count = static_cast<double>(files);
    if (bound && bound->is_share)
      judge(what, bound, Unit::share, found > 0 ? count / found : 0);
    else
      judge(what, bound, Unit::files, count);
  };
  const double seconds = report.wall_seconds;
  judge("files_per_second", expected.files_per_second, Unit::number,
        run_figures(report).files_per_second);
  judge("rows_per_second", expected.rows_per_second, Unit::number,
        seconds > 0 ? static_cast<double>(rows) / seconds : 0);
  judge("seconds", expected.seconds, Unit::number, seconds);
  judge("peak_memory", expected.peak_memory, Unit::bytes,
        static_cast<double>(report.resident_peak));
  judge_files("failed", expected.failed, report.counts.failed);
  judge_files("skipped", expected.skipped, report.counts.skipped);
  return out;
}

}  // namespace melflow
