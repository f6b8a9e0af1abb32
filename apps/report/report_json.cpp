#include "apps/report/report_json.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "apps/json_value.h"
#include "apps/profile/figures.h"
#include "apps/report/limits_text.h"
#include "apps/report/verdicts_text.h"
#include "pipeline/base/text.h"
#include "pipeline/base/version.h"
#include "pipeline/base/warned_config_error.h"

namespace melflow {
namespace {

using Json = nlohmann::ordered_json;

const char* to_text(Ending ending) {
  return ending == Ending::complete ? "complete" : ending == Ending::stopped ? "stopped" : "failed";
}

Json stage_json(const StageReport& s, const RunReport& r) {
  Json out{{"name", s.name},
           {"stage", s.stage},
           {"concurrency", s.concurrency},
           {"peak_concurrency", s.peak_concurrency},
           {"items_in", s.items_in},
           {"items_out", s.items_out},
           {"bytes_in", s.bytes_in},
           {"bytes_out", s.bytes_out},
           {"rows_in", s.rows_in},
           {"rows_out", s.rows_out},
           {"files_in", s.files_in}};
  out["seconds"] = {{"busy", s.time.busy},
                    {"waiting_input", s.time.waiting_input},
                    {"blocked_output", s.time.blocked_output},
                    {"waiting_core", s.time.waiting_core},
                    {"idle_after_end", s.time.idle_after_end}};
  const StageFigures f = stage_figures(s, r);
  out["busy_share"] = s.time.total() > 0 ? s.time.busy / s.time.total() : 0;
  out["used"] = f.used;
  out["cpu_seconds"] = s.cpu_seconds;
  Json& rates = out["per_second"] = Json::object();
  for (const auto& [name, rate] :
       {std::pair("files", f.files_per_second), std::pair("bytes_in", f.bytes_in_per_second),
        std::pair("bytes_out", f.bytes_out_per_second), std::pair("rows", f.rows_per_second)})
    if (rate > 0) rates[name] = rate;
  out["call_seconds"] = {{"calls", s.service.calls},
                         {"p50", s.service.p50},
                         {"p90", s.service.p90},
                         {"p99", s.service.p99},
                         {"greatest", s.service.greatest}};
  if (!s.summary.empty()) {
    Json& summary = out["summary"] = Json::object();
    for (const auto& [name, value] : s.summary) summary[name] = json_of(value);
  }
  return out;
}

Json machine_json(const RunReport& r) {
  const RunFigures f = run_figures(r);
  const ProcessUsage& u = r.usage;
  Json out{{"cores", r.cores},
           {"cores_used", f.cores_used},
           {"user_seconds", u.user_seconds},
           {"system_seconds", u.system_seconds},
           {"voluntary_switches", u.voluntary_switches},
           {"involuntary_switches", u.involuntary_switches},
           {"major_faults", u.major_faults},
           {"minor_faults", u.minor_faults},
           {"bytes_read", r.bytes_read}};
  if (u.has_disk)
    out.update({{"disk_read_bytes", u.disk_read_bytes},
                {"disk_written_bytes", u.disk_written_bytes},
                {"page_cache_share", f.page_cache_share},
                {"disk_read_per_second", f.disk_read_per_second}});
  return out;
}

Json slow_json(const SlowFile& f) {
  return {{"path", f.name},
          {"stage", f.stage},
          {"seconds", f.visit.seconds},
          {"files_together", f.visit.files}};
}

Json edge_json(const EdgeReport& e) {
  Json out{{"from", e.from},
           {"to", e.to},
           {"queue", e.capacity},
           {"max_depth", e.max_depth},
           {"mean_depth", e.mean_depth}};
  if (e.start_depth > 0)
    out["start"] = {{"depth", e.start_depth}, {"wait_seconds", e.start_wait_seconds}};
  return out;
}

Json remark_json(const Remark& r) {
  return {{"index", r.index},
          {"path", r.name},
          {"status", melflow::to_text(r.entry.outcome)},
          {"stage", r.entry.stage},
          {"reason", r.entry.reason}};
}

// `line_end`: a line feed and the indentation of the line on which `value` begins.
void append(std::string& out, const Json& value, std::string& line_end) {
  if (value.is_string()) {
    out += json_string(value.get_ref<const std::string&>());
  } else if (!value.is_structured() || value.empty()) {
    out += value.dump();
  } else {
    out += value.is_object() ? '{' : '[';
    line_end += "  ";
    const char* separator = "";
    for (const auto& [key, item] : value.items()) {
      out.append(separator).append(line_end);
      if (value.is_object()) out += json_string(key) + ": ";
      append(out, item, line_end);
      separator = ",";
    }
    line_end.resize(line_end.size() - 2);
    out.append(line_end) += value.is_object() ? '}' : ']';
  }
}

}  // namespace

std::string json_text(const Json& document) {
  std::string out, line_end = "\n";
  append(out, document, line_end);
  return printable(out) + "\n";
}

Json config_json(const Plan& plan) { return json_of(plan.settings.config); }

std::size_t rows_made(const StageReport& sink) {
  for (const char* key : {"computed_rows", "rows"})
    for (const auto& [name, value] : sink.summary)
      if (name == key) return static_cast<std::size_t>(std::stoull(value.text()));
  return sink.rows_in;
}

std::size_t rows_of_run(const RunReport& report, const Plan& plan) {
  std::size_t rows = 0;
  for (std::size_t i = 0; i < report.stages.size() && i < plan.nodes.size(); ++i)
    if (plan.nodes[i].info->traits.kind == StageKind::sink) rows += rows_made(report.stages[i]);
  return rows;
}

Json report_json(const RunReport& r, const Plan& plan, const Remarks& remarks, int exit_code,
                 const std::vector<Verdict>& verdicts) {
  const Ledger::Counts& c = r.counts;
  Json out{{"melflow_version", kVersion},
           {"ending", to_text(r.ending)},
           {"exit_code", exit_code},
           {"error", r.error.empty() ? Json() : Json(r.error)},
           {"seconds", r.wall_seconds},
           {"graph_seconds", r.graph_seconds},
           {"graph_cpu_seconds", r.graph_cpu_seconds},
           {"workers", r.workers},
           {"rows", rows_of_run(r, plan)}};
  if (r.filling_seconds > 0) out["filling_seconds"] = r.filling_seconds;
  out["start_seconds"] = r.start_seconds;
  out["finish_seconds"] = r.finish_seconds;
  if (r.first_row_seconds > 0) out["first_row_seconds"] = r.first_row_seconds;
  out["files"] = {{"found", c.found},   {"ok", c.ok},           {"skipped", c.skipped},
                  {"failed", c.failed}, {"not_run", c.not_run}, {"ok_with_remark", c.warned},
                  {"kept", r.kept}};
  const double rate = run_figures(r).files_per_second;
  out["files_per_second"] = rate;
  if (rate > 0) out["seconds_per_file"] = 1 / rate;
  out["memory"] = {{"budget", r.memory_budget}, {"peak", r.memory_peak},
                   {"index", r.memory_index},   {"wait_seconds", r.memory_wait_seconds},
                   {"wanted", r.memory_wanted}, {"resident_peak", r.resident_peak}};
  for (const auto& [node, share] : r.memory_holders) out["memory"]["holders"][node] = share;
  if (r.latency.calls > 0)
    out["latency_seconds"] = {{"p50", r.latency.p50},
                              {"p90", r.latency.p90},
                              {"p99", r.latency.p99},
                              {"greatest", r.latency.greatest}};
  out["machine"] = machine_json(r);
  const Limits limits = find_limits(r);
  out["limit"] = limits_json(limits);
  if (limits.is_known) out["limit"]["text"] = limits_text(limits, r);
  if (!verdicts.empty()) out["expected"] = verdicts_json(verdicts);
  out["stages"] = Json::array();
  for (const StageReport& s : r.stages) out["stages"].push_back(stage_json(s, r));
  out["edges"] = Json::array();
  for (const EdgeReport& e : r.edges) out["edges"].push_back(edge_json(e));
  out["slowest"] = Json::array();
  for (const SlowFile& f : r.slowest) out["slowest"].push_back(slow_json(f));
  out["warnings"] = r.warnings;
  out["remarks"] = Json::array();
  for (const Remark& remark : remarks) out["remarks"].push_back(remark_json(remark));
  out["config"] = config_json(plan);
  return out;
}

namespace {

Json rounded(const std::vector<double>& values, double unit = 1) {
  Json out = Json::array();
  for (const double v : values) out.push_back(std::round(v / unit * 1e3) / 1e3);
  return out;
}

}  // namespace

Json series_json(const Series& s) {
  Json out{{"step", s.step},
           {"seconds", rounded(s.seconds)},
           {"files", s.files},
           {"rows", s.rows},
           {"bytes_read", s.bytes_read},
           {"disk_read_bytes", s.disk_read_bytes},
           {"reserved", s.reserved},
           {"resident", s.resident},
           {"cpu_seconds", rounded(s.cpu_seconds)}};
  out["nodes"] = Json::array();
  for (const Series::Node& n : s.nodes) {
    std::vector<double> busy;
    for (const StageTime& t : n.time) busy.push_back(t.busy);
    out["nodes"].push_back(
        {{"name", n.name}, {"waiting", n.waiting}, {"busy_seconds", rounded(busy)}});
  }
  return out;
}

Json workers_json(const WorkerTimes& times, const RunReport& report) {
  Json rows = Json::array();
  for (const auto& worker : times.workers) {
    Json row = Json::object();
    for (std::size_t n = 0; n < worker.size(); ++n)
      if (!worker[n].empty()) row[report.stages[n].name] = rounded(worker[n], times.step);
    rows.push_back(std::move(row));
  }
  return {{"from", times.from}, {"step", times.step}, {"rows", std::move(rows)}};
}

Json problems_json(const std::vector<Problem>& problems) {
  Json out = Json::array();
  for (const Problem& p : problems) {
    Json one{{"file", p.mark.file ? Json(*p.mark.file) : Json()}};
    if (p.mark.line > 0) one.update({{"line", p.mark.line}, {"column", p.mark.column}});
    one["message"] = p.message;
    out.push_back(std::move(one));
  }
  return out;
}

Json not_started_json(const ConfigError& error, int exit_code) {
  return {{"melflow_version", kVersion},
          {"ending", "not_started"},
          {"exit_code", exit_code},
          {"problems", problems_json(error.problems().sorted())},
          {"warnings", problems_json(warnings_beside(error))}};
}

Json not_started_json(const std::string& error, int exit_code) {
  return {{"melflow_version", kVersion},
          {"ending", "not_started"},
          {"exit_code", exit_code},
          {"error", error}};
}

}  // namespace melflow
