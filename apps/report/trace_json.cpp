#include "apps/report/trace_json.h"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <vector>

#include <fmt/compile.h>
#include <fmt/format.h>

#include "apps/json_value.h"
#include "apps/report/format.h"

namespace melflow {
namespace {

// With more arrows, viewers become slow.
constexpr std::size_t kFollowed = 1000;  // files

using Track = std::vector<const Visit*>;

bool is_before(const Visit* a, const Visit* b) {
  return a->began != b->began ? a->began < b->began : a->ended > b->ended;
}

class Trace {
 public:
  Trace(const VisitLog& visits, const Series& series, const RunReport& report, const Plan& plan)
      : series_(series),
        report_(report),
        source_(*plan.nodes.front().faces.source),
        graph_began_(1e-6 * at(report.graph_began)) {
    for (const PlanNode& n : plan.nodes) names_.push_back(json_string(n.name));
    collect_workers(visits);
    for (std::size_t node = 0; node < report.stages.size(); ++node)
      if (!report.stages[node].on_workers) collect_own(visits, node);
  }

  std::string text() {
    out_ = R"({"displayTimeUnit":"ms","traceEvents":[)";
    add(R"({{"ph":"M","name":"process_name","pid":1,"tid":0,"args":{{"name":"melflow"}}}})");
    for (std::size_t i = 0; i < tracks_.size(); ++i) {
      add(R"({{"ph":"M","name":"thread_name","pid":1,"tid":{},"args":{{"name":{}}}}})", i + 1,
          json_string(titles_[i]));
      add(R"({{"ph":"M","name":"thread_sort_index","pid":1,"tid":{0},"args":{{"sort_index":{0}}}}})",
          i + 1);
      for (const Visit* v : tracks_[i]) add_span(*v, i + 1);
    }
    add_flows();
    add_counters();
    out_ += "\n]}\n";
    return std::move(out_);
  }

 private:
  // Microseconds since the run began.
  [[nodiscard]] double at(std::chrono::steady_clock::time_point t) const {
    return std::chrono::duration<double, std::micro>(t - report_.began).count();
  }

  void collect_workers(const VisitLog& visits) {
    for (const std::deque<Visit>* thread : visits.by_thread()) {
      Track track;
      for (const Visit& v : *thread)
        if (report_.stages[static_cast<std::size_t>(v.node)].on_workers) track.push_back(&v);
      if (track.empty()) continue;
      std::sort(track.begin(), track.end(), is_before);
      tracks_.push_back(std::move(track));
      titles_.push_back(fmt::format("worker {}", tracks_.size()));
    }
  }

  // An engine's items overlap without nesting, so it gets as many tracks as it had items at once.
  void collect_own(const VisitLog& visits, std::size_t node) {
    Track all;
    for (const std::deque<Visit>* thread : visits.by_thread())
      for (const Visit& v : *thread)
        if (static_cast<std::size_t>(v.node) == node) all.push_back(&v);
    std::sort(all.begin(), all.end(), is_before);
    const std::size_t first = tracks_.size();
    for (const Visit* v : all) {
      std::size_t track = first;
      while (track < tracks_.size() && tracks_[track].back()->ended > v->began) ++track;
      if (track == tracks_.size()) {
        tracks_.emplace_back();
        titles_.push_back(fmt::format("{} {}", report_.stages[node].name, track - first + 1));
      }
      tracks_[track].push_back(v);
    }
  }

  void separate() {
    out_ += is_first_ ? "\n" : ",\n";
    is_first_ = false;
  }

  template <class... Args>
  void add(fmt::format_string<Args...> event, Args&&... args) {
    separate();
    fmt::format_to(std::back_inserter(out_), event, std::forward<Args>(args)...);
  }

  // Spans are nearly all of a trace, so this uses compile-time formats and no floating point.
  void add_span(const Visit& v, std::size_t track) {
    using Nanoseconds = std::chrono::nanoseconds;
    const std::int64_t from = Nanoseconds(v.began - report_.began).count(),
                       took = Nanoseconds(v.ended - v.began).count();
    const auto out = std::back_inserter(out_);
    separate();
    fmt::format_to(
        out,
        FMT_COMPILE(
            R"({{"ph":"X","cat":"{}","name":{},"pid":1,"tid":{},"ts":{}.{:03},"dur":{}.{:03},"args":{{)"),
        v.began < report_.graph_began ? "loading" : "stage",
        names_[static_cast<std::size_t>(v.node)], track, from / 1000, from % 1000, took / 1000,
        took % 1000);
    if (v.files > 0)
      fmt::format_to(out, FMT_COMPILE(R"("file":{},)"), json_string(source_.name(v.index)));
    fmt::format_to(
        out,
        FMT_COMPILE(R"("files":{},"rows_in":{},"rows_out":{},"bytes_in":{},"bytes_out":{}}}}})"),
        v.files, v.rows_in, v.rows_out, v.bytes_in, v.bytes_out);
  }

  void add_flows() {
    struct Stop {
      const Visit* visit;
      std::size_t track;
    };
    std::map<std::size_t, std::vector<Stop>> ways;  // by file index; only the first files
    for (std::size_t i = 0; i < tracks_.size(); ++i) {
      for (const Visit* v : tracks_[i]) {
        if (v->files == 0) continue;
        if (ways.size() == kFollowed && v->index > ways.rbegin()->first) continue;
        ways[v->index].push_back({v, i + 1});
        if (ways.size() > kFollowed) ways.erase(std::prev(ways.end()));
      }
    }
    for (auto& [index, way] : ways) {
      if (way.size() < 2) continue;
      std::sort(way.begin(), way.end(),
                [](const Stop& a, const Stop& b) { return is_before(a.visit, b.visit); });
      for (std::size_t i = 0; i < way.size(); ++i)
        add(R"({{"ph":"{}","cat":"file","name":"file","id":{},"pid":1,"tid":{},"ts":{:.3f}{}}})",
            i == 0                ? "s"
            : i + 1 == way.size() ? "f"
                                  : "t",
            index, way[i].track, at(way[i].visit->began), i == 0 ? "" : R"(,"bp":"e")");
    }
  }

  template <class Figures>
  void add_counter(const std::string& name, double seconds, const Figures& args) {
    add(R"({{"ph":"C","name":{},"pid":1,"tid":0,"ts":{:.3f},"args":{}}})", json_string(name),
        1e6 * seconds, nlohmann::json(args).dump());
  }

  // Adds the number of slots in each state between two points.
  void add_states(const std::string& name, double from, const StageTime& a, double to,
                  const StageTime& b) {
    const double dt = to - from;
    if (dt <= 0) return;
    add_counter(name + " states", from,
                nlohmann::ordered_json{{"busy", (b.busy - a.busy) / dt},
                                       {"input", (b.waiting_input - a.waiting_input) / dt},
                                       {"output", (b.blocked_output - a.blocked_output) / dt},
                                       {"core", (b.waiting_core - a.waiting_core) / dt},
                                       {"idle", (b.idle_after_end - a.idle_after_end) / dt}});
  }

  void add_counters() {
    const double end = graph_began_ + report_.graph_seconds;
    for (std::size_t i = 0; i < series_.size(); ++i) {
      add_counter("memory", series_.seconds[i],
                  nlohmann::ordered_json{{"reserved", series_.reserved[i]},
                                         {"resident", series_.resident[i]}});
    }
    for (std::size_t n = 0; n < report_.stages.size(); ++n) {
      const StageReport& stage = report_.stages[n];
      double since = graph_began_;
      StageTime before;
      if (n < series_.nodes.size()) {
        const Series::Node& node = series_.nodes[n];
        for (std::size_t i = 0; i < series_.size(); ++i) {
          const double seconds = series_.seconds[i];
          if (n > 0)
            add_counter("queue before " + stage.name, seconds,
                        nlohmann::ordered_json{{"items", node.waiting[i]}});
          if (seconds <= since || seconds >= end) continue;
          add_states(stage.name, since, before, seconds, node.time[i]);
          since = seconds;
          before = node.time[i];
        }
      }
      add_states(stage.name, since, before, end, stage.time);
      add_counter(stage.name + " states", end,
                  nlohmann::ordered_json{
                      {"busy", 0}, {"input", 0}, {"output", 0}, {"core", 0}, {"idle", 0}});
    }
  }

  const Series& series_;
  const RunReport& report_;
  const SourceStage& source_;
  const double graph_began_;  // [s]
  std::vector<std::string> names_, titles_;
  std::vector<Track> tracks_;
  std::string out_;
  bool is_first_ = true;
};

}  // namespace

std::string trace_json(const VisitLog& visits, const Series& series, const RunReport& report,
                       const Plan& plan) {
  return Trace(visits, series, report, plan).text();
}

std::string left_out_text(const VisitLog& visits) {
  std::size_t kept = 0;
  for (const std::deque<Visit>* thread : visits.by_thread()) kept += thread->size();
  return fmt::format(
      "--trace: the first {} calls of stages are in the trace, {} later ones are not; keep more "
      "(--trace-calls), or trace a shorter run (--stop-after, fewer files)",
      count_text(kept), count_text(visits.left_out()));
}

}  // namespace melflow
