#include "apps/report/metrics_text.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "apps/report/report_json.h"
#include "pipeline/base/text.h"

namespace melflow {
namespace {

using State = RunMetrics::State;

constexpr std::pair<State, const char*> kStates[] = {
    {State::loading, "loading"}, {State::running, "running"}, {State::complete, "complete"},
    {State::stopped, "stopped"}, {State::failed, "failed"},   {State::not_started, "not_started"}};

State state_of(Ending ending) {
  return ending == Ending::complete  ? State::complete
         : ending == Ending::stopped ? State::stopped
                                     : State::failed;
}

// The value of a label. Bytes that are no UTF-8 are escaped, as a reader would refuse the file.
std::string quoted(const std::string& value) {
  std::string out = "\"";
  for (const char c : printable(value))
    out += c == '\\' ? "\\\\" : c == '"' ? "\\\"" : c == '\n' ? "\\n" : std::string(1, c);
  return out + "\"";
}

class Text {
 public:
  explicit Text(const std::string& run) : run_("run=" + quoted(run)) {}

  void begin(std::string_view name, std::string_view help) {
    name_ = fmt::format("melflow_run_{}", name);
    out_ += fmt::format("# HELP {0} {1}\n# TYPE {0} gauge\n", name_, help);
  }
  template <class T>
  void add(T value, const std::string& label = {}) {
    out_ += fmt::format("{}{{{}{}}} {}\n", name_, run_, label.empty() ? "" : "," + label, value);
  }
  template <class T>
  void one(std::string_view name, std::string_view help, T value) {
    begin(name, help);
    add(value);
  }
  std::string end() { return std::move(out_); }

 private:
  std::string run_, name_, out_;
};

}  // namespace

void update(RunMetrics& m, const Progress& progress, const RunSample& sample) {
  m.state = progress.is_filling ? State::loading : State::running;
  m.seconds = progress.seconds;
  m.files = progress.counts;
  m.reserved = sample.reserved;
  if (sample.nodes.empty()) return;
  m.rows = sample.rows;
  m.bytes_read = sample.bytes_read;
  for (std::size_t i = 0; i < std::min(m.nodes.size(), sample.nodes.size()); ++i) {
    m.nodes[i].busy = sample.nodes[i].time.busy;
    m.nodes[i].waiting = sample.nodes[i].waiting;
  }
}

void update(RunMetrics& m, const RunReport& report, const Plan& plan) {
  m.state = state_of(report.ending);
  m.seconds = report.wall_seconds;
  m.files = report.counts;
  m.rows = rows_of_run(report, plan);
  m.bytes_read = report.bytes_read;
  m.reserved = 0;
  m.cpu_seconds = report.usage.cpu_seconds();
  m.nodes.clear();
  for (const StageReport& s : report.stages) m.nodes.push_back({s.name, s.time.busy, 0});
}

std::string metrics_text(const RunMetrics& m, const std::string& run) {
  Text text(run);
  text.begin("state", "1 for the state that the run is in");
  for (const auto& [state, name] : kStates)
    text.add(m.state == state ? 1 : 0, fmt::format("state=\"{}\"", name));
  text.one("start_time_seconds", "When the run began, since 1970", m.began);
  text.one("seconds", "Since the run began", m.seconds);
  text.one("found_files", "Files that the run has found", m.files.found);
  text.begin("files", "Files that are done, by outcome");
  for (const auto& [name, count] :
       {std::pair("ok", m.files.ok), std::pair("skipped", m.files.skipped),
        std::pair("failed", m.files.failed), std::pair("not_run", m.files.not_run)})
    text.add(count, fmt::format("outcome=\"{}\"", name));
  text.one("warned_files", "Files that are ok with a warning", m.files.warned);
  text.one("rows", "Rows that the outputs have taken", m.rows);
  text.one("read_bytes", "Bytes read of the files", m.bytes_read);
  text.one("reserved_bytes", "Of the memory budget, reserved", m.reserved);
  text.one("resident_bytes", "Resident memory of the process", m.resident);
  text.one("processor_seconds", "Processor time of the process since the run began", m.cpu_seconds);
  text.begin("node_busy_seconds", "Time of a node with items, over all of its slots");
  for (const RunMetrics::Node& n : m.nodes) text.add(n.busy, "node=" + quoted(n.name));
  text.begin("node_waiting_items", "Items in the queue before a node");
  for (const RunMetrics::Node& n : m.nodes) text.add(n.waiting, "node=" + quoted(n.name));
  return text.end();
}

}  // namespace melflow
