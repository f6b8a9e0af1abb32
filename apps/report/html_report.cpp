#include "apps/report/html_report.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <vector>

#include <fmt/format.h>

#include "apps/report/format.h"
#include "apps/report/report_json.h"
#include "apps/report/svg.h"

namespace melflow {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kMostRemarks = 200;

constexpr const char* kStyle = R"(
body{font:14px/1.45 system-ui,sans-serif;color:#222;max-width:1180px;margin:24px auto;padding:0 16px}
h1{font-size:22px;margin:0 0 4px}h2{font-size:16px;margin:28px 0 8px}p{margin:6px 0}
.big span{display:inline-block;margin:6px 26px 6px 0}.big b{display:block;font-size:20px;font-weight:600}
.limit{background:#fff6e5;border-left:4px solid #f0821e;padding:8px 12px;white-space:pre-wrap}
.bad{background:#fdeaea;border-left:4px solid #c33;padding:8px 12px}
.wide{overflow-x:auto}svg{width:100%;height:auto;display:block;margin:4px 0}
table{border-collapse:collapse;font-size:13px}th,td{padding:3px 9px;text-align:right;border-bottom:1px solid #e5e5e5}
th{font-weight:600;background:#f6f6f6}td:first-child,th:first-child,.left td,.left th{text-align:left}
svg text{font:11px system-ui,sans-serif;fill:#333}svg .t{font-weight:600;font-size:12px}svg .y{text-anchor:end}
svg .x,svg .c,svg .h{text-anchor:middle}svg .h{font-weight:600;font-size:13px}svg .n{font-weight:600;text-anchor:end}
svg .g{stroke:#e4e4e4}svg .m{stroke:#999;stroke-dasharray:5 4}svg .l{fill:none;stroke-width:1.6}
svg .e{fill:none}svg .b{stroke:#999}.key i{display:inline-block;width:12px;height:12px;margin:0 5px 0 16px}
pre{background:#f6f6f6;padding:10px;overflow-x:auto;font-size:12px}
)";

struct State {
  const char* key;
  const char* name;
  const char* colour;
};
constexpr State kStates[] = {{"busy", "busy", "#7cc08a"},
                             {"waiting_input", "waits for input", "#c9dcf2"},
                             {"blocked_output", "waits for room after it", "#eda19a"},
                             {"waiting_core", "waits for a core", "#f5cf7a"},
                             {"idle_after_end", "over", "#ededed"}};

double number(const Json& in, const char* key) {
  const auto it = in.find(key);
  return it != in.end() && it->is_number() ? it->get<double>() : 0;
}
std::size_t count(const Json& in, const char* key) {
  return static_cast<std::size_t>(number(in, key));
}
std::string text(const Json& in, const char* key) {
  const auto it = in.find(key);
  return it != in.end() && it->is_string() ? it->get<std::string>() : "";
}
const Json& part(const Json& in, const char* key) {
  static const Json none = Json::object();
  const auto it = in.find(key);
  return it != in.end() ? *it : none;
}

std::string rate(double value, const std::string& unit) {
  return value > 0 ? rate_text(value) + unit : "";
}

// Turns "cores_used" into "cores used".
std::string in_words(std::string key) {
  std::replace(key.begin(), key.end(), '_', ' ');
  return key;
}

class Page {
 public:
  explicit Page(const Json& report) : r_(report) {}

  std::string make() {
    heading();
    flow();
    states();
    series();
    stages();
    update();
    files();
    rest();
    return html_page("melflow: " + summary(), out_);
  }

 private:
  [[nodiscard]] std::string summary() const {
    const Json& f = part(r_, "files");
    return fmt::format(
        "{}, {} ok, {} skipped, {} failed{}", plural(count(f, "found"), "file"),
        count_text(count(f, "ok")), count_text(count(f, "skipped")), count_text(count(f, "failed")),
        count(f, "not_run") > 0 ? ", " + count_text(count(f, "not_run")) + " not run" : "");
  }

  void heading() {
    const Json& machine = part(r_, "machine");
    const Json& memory = part(r_, "memory");
    out_ += fmt::format("<h1>{}</h1><p>melflow {}, the run {}</p>\n<p class=\"big\">",
                        html_text(summary()), html_text(text(r_, "melflow_version")),
                        text(r_, "ending") == "complete"  ? "is complete"
                        : text(r_, "ending") == "stopped" ? "was stopped"
                                                          : "failed");
    const auto figure = [this](const std::string& value, const char* what) {
      if (!value.empty()) out_ += fmt::format("<span><b>{}</b>{}</span>", html_text(value), what);
    };
    figure(rate_text(number(r_, "files_per_second")), "files a second");
    figure(count_text(count(r_, "rows")), "rows");
    figure(seconds_text(number(r_, "seconds")), "in all");
    figure(seconds_text(number(r_, "first_row_seconds")), "until the first row");
    figure(fmt::format("{:.1f} of {}", number(machine, "cores_used"), count(machine, "cores")),
           "cores used");
    figure(mebibytes_text(count(memory, "resident_peak")), "resident at most");
    figure(fmt::format("{} of {}", mebibytes_text(count(memory, "peak")),
                       mebibytes_text(count(memory, "budget"))),
           "reserved at most");
    out_ += "</p>\n";
    if (const std::string error = text(r_, "error"); !error.empty())
      out_ += "<p class=\"bad\">" + html_text(error) + "</p>\n";
    if (const std::string limit = text(part(r_, "limit"), "text"); !limit.empty())
      out_ += "<p class=\"limit\">" + html_text(limit.substr(0, limit.find_last_not_of('\n') + 1)) +
              "</p>\n";
  }

  // Draws the graph; colours show the load of nodes and how full the queues of edges are.
  void flow() {
    FlowChart chart;
    const Json& stages = part(r_, "stages");
    for (const Json& s : stages) {
      const double used = number(s, "used") / std::max(1.0, number(s, "concurrency"));
      const Json& rates = part(s, "per_second");
      const std::string files = rate(number(rates, "files"), " files/s");
      chart.nodes.push_back(
          {{text(s, "name"), text(s, "stage"),
            files.empty() ? rate(number(rates, "rows"), " rows/s") : files,
            fmt::format("{:.0f} % of {} busy", 100 * used, count(s, "concurrency"))},
           used,
           fmt::format("{}: {} items in, {} out", text(s, "name"), count_text(count(s, "items_in")),
                       count_text(count(s, "items_out")))});
    }
    for (const Json& e : part(r_, "edges")) {
      const double full = number(e, "mean_depth") / std::max(1.0, number(e, "queue"));
      chart.edges.push_back(
          {place_of(stages, text(e, "from")), place_of(stages, text(e, "to")), std::min(full, 1.0),
           fmt::format("{:.1f}/{}", number(e, "mean_depth"), count(e, "queue")),
           fmt::format("{} to {}: {:.1f} of {} places of the queue taken on average, {} at most",
                       text(e, "from"), text(e, "to"), number(e, "mean_depth"), count(e, "queue"),
                       count(e, "max_depth"))});
    }
    out_ +=
        "<h2>Flow</h2>\n<div class=\"wide\">" + svg(chart) +
        "</div><p>The warmer a node, the busier it was; the redder an edge, the fuller its queue "
        "(places taken on average / at the end): what comes after a red edge holds back what is "
        "before it.</p>\n";
  }

  static std::size_t place_of(const Json& stages, const std::string& name) {
    std::size_t i = 0;
    while (i + 1 < stages.size() && text(stages[i], "name") != name) ++i;
    return i;
  }

  void states() {
    std::vector<PartsBar> bars;
    for (const Json& s : part(r_, "stages")) {
      const Json& seconds = part(s, "seconds");
      double all = 0;
      for (const State& state : kStates) all += number(seconds, state.key);
      PartsBar& bar = bars.emplace_back(PartsBar{text(s, "name"), {}});
      for (const State& state : kStates)
        bar.parts.push_back(all > 0 ? number(seconds, state.key) / all : 0);
    }
    std::vector<std::string> colours;
    out_ += "<h2>Where the time of each node went</h2>\n<p class=\"key\">";
    for (const State& state : kStates) {
      colours.emplace_back(state.colour);
      out_ += fmt::format("<i style=\"background:{}\"></i>{}", state.colour, state.name);
    }
    out_ += "</p>\n" + svg(bars, colours);
  }

  static std::vector<double> values(const Json& in, const char* key, double unit = 1) {
    std::vector<double> out;
    for (const Json& v : part(in, key)) out.push_back(v.get<double>() / unit);
    return out;
  }
  // Returns the rate between each point and the previous one.
  static std::vector<double> per_second(const std::vector<double>& seconds,
                                        const std::vector<double>& sums, double unit = 1) {
    std::vector<double> out(sums.size(), std::numeric_limits<double>::quiet_NaN());
    for (std::size_t i = 1; i < sums.size() && i < seconds.size(); ++i)
      if (seconds[i] > seconds[i - 1])
        out[i] = (sums[i] - sums[i - 1]) / (seconds[i] - seconds[i - 1]) / unit;
    return out;
  }

  void series() {
    const Json& s = part(r_, "series");
    const std::vector<double> at = values(s, "seconds");
    if (at.size() < 3) return;
    const double end = number(r_, "seconds");
    constexpr double kMega = 1e6, kMebi = 1 << 20;
    out_ += "<h2>Over time</h2>\n";
    const auto draw = [&](const LineChart& chart) { out_ += svg(chart, at, end); };
    draw({"Files", "/s", {{"files", per_second(at, values(s, "files"))}}});
    draw({"Rows", "/s", {{"rows", per_second(at, values(s, "rows"))}}});
    draw({"Read",
          "MB/s",
          {{"files", per_second(at, values(s, "bytes_read"), kMega)},
           {"from the disk", per_second(at, values(s, "disk_read_bytes"), kMega)}}});
    draw({"Cores",
          "",
          {{"used", per_second(at, values(s, "cpu_seconds"))}},
          number(part(r_, "machine"), "cores")});
    draw({"Memory",
          "MiB",
          {{"reserved", values(s, "reserved", kMebi)}, {"resident", values(s, "resident", kMebi)}},
          number(part(r_, "memory"), "budget") / kMebi});
    LineChart busy{"Busy", "", {}}, queues{"Items in the queue before a node", "", {}};
    for (const Json& n : part(s, "nodes")) {
      busy.lines.push_back({text(n, "name"), per_second(at, values(n, "busy_seconds"))});
      queues.lines.push_back({text(n, "name"), values(n, "waiting")});
    }
    // The source has no queue; its line stays empty, so that the other nodes keep their colours.
    if (!queues.lines.empty()) queues.lines.front().values.clear();
    draw(std::move(busy));
    draw(std::move(queues));
    workers(part(s, "workers"), end);
  }

  void workers(const Json& w, double end) {
    RowsChart chart{
        "Workers: what each was in, of the time", {}, number(w, "from"), number(w, "step"), {}};
    for (const Json& s : part(r_, "stages")) chart.names.push_back(text(s, "name"));
    for (const Json& r : part(w, "rows")) {
      RowsChart::Row& row = chart.rows.emplace_back();
      row.name = std::to_string(chart.rows.size());
      for (const std::string& name : chart.names) row.shares.push_back(values(r, name.c_str()));
    }
    if (!chart.rows.empty()) out_ += svg(chart, end);
  }

  void stages() {
    out_ +=
        "<h2>Nodes</h2>\n<div class=\"wide\"><table><tr><th>node<th>stage<th>at once<th>items"
        "<th>files/s<th>MB/s in<th>MB/s out<th>rows/s<th>call p50 [ms]<th>p90<th>p99<th>longest"
        "<th>processor [s]</tr>\n";
    for (const Json& s : part(r_, "stages")) {
      const Json &rates = part(s, "per_second"), &calls = part(s, "call_seconds");
      out_ += fmt::format(
          "<tr><td>{}<td>{}<td>{}/"
          "{}<td>{}<td>{}<td>{}<td>{}<td>{}<td>{}<td>{}<td>{}<td>{}<td>{:.2f}"
          "</tr>\n",
          html_text(text(s, "name")), html_text(text(s, "stage")), count(s, "peak_concurrency"),
          count(s, "concurrency"),
          count_text(std::max(count(s, "items_in"), count(s, "items_out"))),
          rate(number(rates, "files"), ""), megabytes(number(rates, "bytes_in")),
          megabytes(number(rates, "bytes_out")), rate(number(rates, "rows"), ""),
          milliseconds_text(number(calls, "p50")), milliseconds_text(number(calls, "p90")),
          milliseconds_text(number(calls, "p99")), milliseconds_text(number(calls, "greatest")),
          number(s, "cpu_seconds"));
    }
    out_ += "</table></div>\n";
  }
  static std::string megabytes(double per_second) {
    return per_second > 0 ? megabytes_text(per_second) : "";
  }

  void update() {
    std::string lists;
    for (const Json& s : part(r_, "stages"))
      for (const auto& [key, what] : {std::pair("dropped", "gone"), std::pair("changed", "changed"),
                                      std::pair("added", "new")}) {
        const Json& summary = part(s, "summary");
        const Json& names = part(summary, key);
        if (!names.is_array()) continue;  // such as the count `added` of an audio cache
        lists += fmt::format(
            "<details><summary>{}: {} {}</summary><pre>", html_text(text(s, "name")),
            plural(count(summary, (std::string(key) + "_files").c_str()), "file"), what);
        for (const Json& name : names) lists += html_text(name.get<std::string>()) + "\n";
        lists += "</pre></details>\n";
      }
    if (!lists.empty()) out_ += "<h2>Update</h2>\n" + lists;
  }

  void files() {
    if (const Json& slowest = part(r_, "slowest"); !slowest.empty()) {
      out_ += "<h2>Longest stays</h2>\n<table class=\"left\"><tr><th>file<th>node<th>ms</tr>\n";
      for (const Json& f : slowest)
        out_ += fmt::format("<tr><td>{}{}<td>{}<td>{}</tr>\n", html_text(text(f, "path")),
                            count(f, "files_together") > 1
                                ? fmt::format(" and {} more", count(f, "files_together") - 1)
                                : "",
                            html_text(text(f, "stage")), milliseconds_text(number(f, "seconds")));
      out_ += "</table>\n";
    }
    const Json& remarks = part(r_, "remarks");
    if (remarks.empty()) return;
    out_ +=
        "<h2>Skipped, failed, or ok with a warning</h2>\n<table class=\"left\"><tr><th>file"
        "<th>became<th>node<th>reason</tr>\n";
    for (std::size_t i = 0; i < std::min(kMostRemarks, remarks.size()); ++i)
      out_ +=
          fmt::format("<tr><td>{}<td>{}<td>{}<td>{}</tr>\n", html_text(text(remarks[i], "path")),
                      html_text(text(remarks[i], "status")), html_text(text(remarks[i], "stage")),
                      html_text(text(remarks[i], "reason")));
    out_ += "</table>\n";
    if (remarks.size() > kMostRemarks)
      out_ += fmt::format("<p>and {} more; the JSON report has all</p>\n",
                          count_text(remarks.size() - kMostRemarks));
  }

  void rest() {
    const Json& warnings = part(r_, "warnings");
    if (!warnings.empty()) out_ += "<h2>Warnings</h2>\n";
    for (const Json& w : warnings) out_ += "<p>" + html_text(w.get<std::string>()) + "</p>\n";
    const Json& machine = part(r_, "machine");
    out_ += "<h2>Machine</h2>\n<table class=\"left\">";
    for (const auto& [name, value] : machine.items())
      out_ +=
          fmt::format("<tr><td>{}<td>{}</tr>", html_text(in_words(name)),
                      html_text(value.is_number_float() ? fmt::format("{:.3g}", value.get<double>())
                                                        : value.dump()));
    out_ +=
        "</table>\n<h2>Configuration</h2>\n<details><summary>with every default</summary><pre>" +
        html_text(json_text(part(r_, "config"))) + "</pre></details>\n";
  }

  const Json& r_;
  std::string out_;
};

}  // namespace

std::string html_page(const std::string& title, const std::string& body) {
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{}</title>"
      "<style>{}</style></head><body>\n{}</body></html>\n",
      html_text(title), kStyle, body);
}

std::string html_report(const Json& report) { return Page(report).make(); }

}  // namespace melflow
