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

double number_in(const Value& map, const char* key) {
  const Value* value = map.find(key);
  double out = 0;
  return value != nullptr && detail::parse_number(*value, out).empty() ? out : 0;
}

std::optional<OtherProcesses> other_processes(const StageReport& stage) {
  for (const auto& [name, value] : stage.summary) {
    if (name != "processes") continue;
    return OtherProcesses{static_cast<int>(number_in(value, "count")),
                          number_in(value, "cpu_seconds")};
  }
  return std::nullopt;
}

double all_cpu_seconds(const StageReport& stage) {
  const auto others = other_processes(stage);
  return stage.cpu_seconds + (others ? others->cpu_seconds : 0);
}

RunFigures run_figures(const RunReport& report) {
  const Ledger::Counts& c = report.counts;
  const ProcessUsage& usage = report.usage;
  RunFigures out;
  out.files = c.closed() - c.not_run - report.kept;
  out.files_per_second = per_second(out.files, report.wall_seconds);
  double cpu = usage.cpu_seconds();
  for (const StageReport& s : report.stages) cpu += all_cpu_seconds(s) - s.cpu_seconds;
  out.cores_used = per_second(cpu, report.wall_seconds);
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

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

}  // namespace melflow
