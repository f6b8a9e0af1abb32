#include "apps/profile/figures.h"

#include <algorithm>

#include "pipeline/options/option_type.h"

namespace melflow {
namespace {

double per_second(double n, double seconds) { return seconds > 0 ? n / seconds : 0; }

double per_second(std::size_t n, double seconds) {
  return per_second(static_cast<double>(n), seconds);
}

}  // namespace

StageFigures stage_figures(const StageReport& stage, const RunReport& report) {
  const double seconds = report.graph_seconds;
  const bool is_source = stage.items_in == 0;
  return {
      .files_per_second = per_second(is_source ? stage.items_out : stage.files_in, seconds),
      .bytes_in_per_second = per_second(stage.bytes_in, seconds),
      .bytes_out_per_second = per_second(stage.bytes_out, seconds),
      .rows_per_second = per_second(stage.items_out > 0 ? stage.rows_out : stage.rows_in, seconds),
      .used = per_second(stage.time.busy, seconds)};
}

RunFigures run_figures(const RunReport& report) {
  const Ledger::Counts& c = report.counts;
  const ProcessUsage& usage = report.usage;
  RunFigures out;
  out.files = c.closed() - c.not_run - report.kept;
  out.files_per_second = per_second(out.files, report.wall_seconds);
  out.cores_used = per_second(usage.cpu_seconds(), report.wall_seconds);
  const auto from_disk = static_cast<double>(usage.disk_read_bytes);
  if (report.bytes_read > 0 && usage.has_disk)
    out.page_cache_share =
        std::clamp(1 - from_disk / static_cast<double>(report.bytes_read), 0.0, 1.0);
  out.disk_read_per_second = per_second(from_disk, report.wall_seconds);
  return out;
}

double files_per_working_second(const RunReport& report) {
  return per_second(run_figures(report).files, report.filling_seconds + report.graph_seconds);
}

const Value* summary_of(const StageReport& stage, std::string_view name) {
  for (const auto& [key, value] : stage.summary)
    if (key == name) return &value;
  return nullptr;
}

double number_of(const Value* value) {
  double out = 0;
  return value != nullptr && detail::parse_number(*value, out).empty() ? out : 0;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

}  // namespace melflow
