// `--report`: the page of a run, which draws the contents of the JSON report of the same run.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <regex>
#include <string>
#include <vector>

#include "apps/report/format.h"
#include "apps/report/html_report.h"
#include "apps/report/svg.h"
#include "tests/apps/pipelines.h"
#include "tests/apps/process.h"
#include "tests/support/audio_files.h"

namespace melflow::test::html_report_test {

using Json = nlohmann::ordered_json;

namespace {

// Returns tags that are never closed, or that close nothing; "" for none.
std::string unbalanced(const std::string& page) {
  static const std::regex tag("<(/?)([a-z0-9]+)([^<>]*)>");
  std::vector<std::string> open;
  for (std::sregex_iterator it(page.begin(), page.end(), tag), end; it != end; ++it) {
    const std::string name = (*it)[2], rest = (*it)[3];
    // HTML closes these implicitly.
    if (name == "meta" || name == "td" || name == "th" || rest.ends_with('/')) continue;
    if ((*it)[1].length() == 0) {
      open.push_back(name);
    } else {
      if (open.empty() || open.back() != name) return "</" + name + ">";
      open.pop_back();
    }
  }
  return open.empty() ? "" : "<" + open.back() + ">";
}

struct Reported {
  Ended ended;
  std::string page;
  Json json;
};

Reported run_with_page(const TempFolder& folder, std::vector<std::string> more = {}) {
  std::filesystem::create_directories(folder / "data");
  for (unsigned i = 0; i < 3; ++i)
    test::write_wav(folder / fmt::format("data/<b>{}&.wav", i), 8000, 8000, i);
  test::write_text(folder / "data/<script>alert(1)<script>.wav", "no sound");
  test::write_text(folder / "p.yaml",
                   test::nodes_to_mel("root: data", "sample_rate: 8000, n_fft: 256") +
                       "  write: {stage: hdf5_write, from: mel, path: o.h5, overwrite: true}\n");
  std::vector<std::string> command{MELFLOW_PROGRAM, "run",    "p.yaml",
                                   "--report",      "r.html", "--json=r.json"};
  command.insert(command.end(), more.begin(), more.end());
  Reported out{test::run(folder, command), "", {}};
  if (out.ended.code == 3 || out.ended.code == 0) {
    out.page = test::read_text(folder / "r.html");
    out.json = Json::parse(test::read_text(folder / "r.json"));
  }
  return out;
}

}  // namespace

TEST_CASE("html report: has the figures of the JSON report, every node and every warning") {
  const TempFolder folder;
  const Reported r = run_with_page(folder);
  INFO(r.ended.err);
  REQUIRE(r.ended.code == 3);
  CHECK(unbalanced(r.page) == "");
  CHECK(has(r.page, "<h1>4 files, 3 ok, 0 skipped, 1 failed</h1>"));
  CHECK(has(r.page, "<b>" + count_text(r.json["rows"].get<std::size_t>()) + "</b>rows"));
  CHECK(has(r.page,
            "<b>" + rate_text(r.json["files_per_second"].get<double>()) + "</b>files a second"));
  CHECK(has(r.page, "<b>" + seconds_text(r.json["seconds"].get<double>()) + "</b>in all"));
  for (const Json& stage : r.json["stages"]) {
    const std::string name = stage["name"];
    CAPTURE(name);
    CHECK(has(r.page, "class=\"h\">" + name + "</text>"));
    CHECK(
        has(r.page, fmt::format("<tr><td>{}<td>{}<td>", name, stage["stage"].get<std::string>())));
    CHECK(
        has(r.page, fmt::format("{:.0f} % of {} busy",
                                100 * stage["used"].get<double>() / stage["concurrency"].get<int>(),
                                stage["concurrency"].get<int>())));
  }
  CHECK(has(r.page, "<td>failed<td>decode<td>"));
  CHECK(has(r.page, "&quot;n_fft&quot;"));  // the configuration
}

TEST_CASE("html report: what files are called is text, and nothing comes from elsewhere") {
  const TempFolder folder;
  const Reported r = run_with_page(folder);
  REQUIRE(r.ended.code == 3);
  CHECK(has(r.page, "&lt;script&gt;alert(1)&lt;script&gt;.wav"));
  for (const char* part :
       {"<script", "<b>0&", "http:", "https:", "url(", "@import", "src=", "href="}) {
    CAPTURE(std::string(part));
    CHECK_FALSE(has(r.page, part));
  }
  CHECK(html_text("a<b>&\"'\x1b[1m") == "a&lt;b&gt;&amp;&quot;&#39;\\u001b[1m");
}

TEST_CASE("html report: is drawn of what a JSON report has, and of one that has less") {
  Json report{{"melflow_version", "1"},  {"ending", "stopped"},
              {"error", "disk <full>"},  {"files", {{"found", 2}, {"ok", 1}, {"not_run", 1}}},
              {"stages", Json::array()}, {"series", nullptr}};
  CHECK(unbalanced(html_report(report)) == "");
  CHECK(has(html_report(report), "disk &lt;full&gt;"));
  CHECK(has(html_report(report), "2 files, 1 ok, 0 skipped, 0 failed, 1 not run"));
  CHECK(has(html_report(report), "was stopped"));
  CHECK_FALSE(has(html_report(report), "Over time"));
  report["series"] = {{"seconds", {0.1, 0.2, 0.4}},
                      {"files", {0, 10, 10}},
                      {"rows", {0, 5, 25}},
                      {"reserved", {1 << 20, 2 << 20, 0}},
                      {"resident", {0, 0, 0}}};
  report["seconds"] = 0.5;
  const std::string page = html_report(report);
  CHECK(unbalanced(page) == "");
  CHECK(has(page, "Over time"));
  // 100 files per second from 0.1 to 0.2 s, then none: axes of 0.5 s and 100 per second.
  CHECK(has(page, "M408.0,26.0L752.0,136.0"));
  CHECK_FALSE(has(page, "nan"));
  CHECK_FALSE(has(page, "Workers"));
  report["stages"] = {{{"name", "read"}}, {{"name", "mel"}}};
  report["series"]["workers"] = {
      {"from", 0.1},
      {"step", 0.2},
      {"rows", {{{"read", {0.5, 0}}, {"mel", {0.25, 1}}}, Json::object()}}};
  const std::string with_workers = html_report(report);
  CHECK(unbalanced(with_workers) == "");
  CHECK(has(with_workers, "Workers: what each was in"));
  // Row 1 from 26 to 48: `read` fills its lower half from 0.1 to 0.3 s; `mel` adds a quarter, then
  // fills all of it.
  CHECK(has(with_workers, "M236.0,37.0H580.0V48.0H236.0Z"));
  CHECK(has(with_workers, "M236.0,31.5H580.0V37.0H236.0ZM580.0,26.0H924.0V48.0H580.0Z"));
}

TEST_CASE("html report: series of a run") {
  const TempFolder folder;
  const Reported r = run_with_page(folder);
  REQUIRE(r.ended.code == 3);
  const Json& series = r.json["series"];
  CHECK(series["nodes"].size() == r.json["stages"].size());
  for (const char* name : {"files", "rows", "bytes_read", "reserved", "resident", "cpu_seconds"}) {
    CAPTURE(std::string(name));
    CHECK(series[name].size() == series["seconds"].size());
  }
  // No worker is busy for more than the whole time, and all together are busy as long as the
  // stages.
  const Json& workers = series["workers"];
  double sum = 0, busy = 0;
  for (const Json& row : workers["rows"])
    for (const Json& shares : row)
      for (const Json& share : shares) sum += share.get<double>() * workers["step"].get<double>();
  for (const Json& s : r.json["stages"])
    if (s["stage"] != "file_list") busy += s["seconds"]["busy"].get<double>();
  CHECK(workers["rows"].size() >= 1);
  CHECK(sum >= 0.9 * busy - 0.01);
}

TEST_CASE("html report: a place that cannot be written is said before the run") {
  const TempFolder folder;
  const Reported r = run_with_page(folder, {"--report", "nowhere/r.html"});
  CHECK(r.ended.code != 0);
  const Reported other = run_with_page(folder, {});
  CHECK(other.ended.code == 3);
  const Ended e =
      exits(1, test::run(folder, {MELFLOW_PROGRAM, "run", "p.yaml", "--report", "nowhere/r.html"}));
  CHECK(has(e.err, "--report: nowhere/r.html"));
  CHECK_FALSE(has(e.out, "rows in"));
  const Ended same =
      exits(2, test::run(folder, {MELFLOW_PROGRAM, "run", "p.yaml", "--report", "p.yaml"}));
  CHECK(has(same.err, "--report: p.yaml does not end in .html"));
}

TEST_CASE("html report: an axis of time has round labels, and room for the last one") {
  const std::regex label("<text x=\"([0-9.]+)\" y=\"[0-9.]+\" class=\"x\">([0-9.]+) s</text>");
  const std::regex width("viewBox=\"0 0 ([0-9.]+) ");
  struct Row {
    double end;
    std::vector<std::string> labels;
  };
  const Row rows[] = {{0.224, {"0", "0.05", "0.1", "0.15", "0.2"}},
                      {8, {"0", "1", "2", "3", "4", "5", "6", "7", "8"}},
                      {9.7, {"0", "2", "4", "6", "8"}},
                      {3600, {"0", "500", "1000", "1500", "2000", "2500", "3000", "3500"}}};
  for (const Row& row : rows) {
    CAPTURE(row.end);
    RowsChart workers{"Workers", {"mel"}, 0, row.end / 4, {{"1", {{1, 1, 1, 1}}}}};
    for (const std::string& drawing :
         {svg(LineChart{"Files", "/s", {{"files", {1, 2, 3}}}}, {0, row.end / 2, row.end}, row.end),
          svg(workers, row.end)}) {
      std::vector<std::string> labels;
      double last = 0;
      for (std::sregex_iterator it(drawing.begin(), drawing.end(), label), end; it != end; ++it) {
        labels.push_back((*it)[2]);
        last = std::stod((*it)[1]) + 3.5 * static_cast<double>(labels.back().size() + 2);
      }
      CHECK(labels == row.labels);
      std::smatch box;
      REQUIRE(std::regex_search(drawing, box, width));
      CHECK(last <= std::stod(box[1]));  // half of a label whose letters are 7 wide
    }
  }
}

TEST_CASE("html report: texts of wide letters are in the boxes of the graph") {
  const std::regex box("<rect [^>]* width=\"([0-9.]+)\""), text("class=\"([hc])\">([^<]+)</text>");
  for (const std::string letter : {"a", "音", "한", "Ａ", "🎵", "🚀", "⏳"})
    for (const int count : {1, 8, 17, 18, 40}) {
      CAPTURE(letter);
      CAPTURE(count);
      std::string name;
      for (int i = 0; i < count; ++i) name += letter;
      FlowChart chart;
      chart.nodes = {{{name, name}, 0, name}};
      const std::string drawing = svg(chart);
      std::smatch wide;
      REQUIRE(std::regex_search(drawing, wide, box));
      int texts = 0;
      for (std::sregex_iterator it(drawing.begin(), drawing.end(), text), end; it != end; ++it) {
        std::string shown = (*it)[2];
        ++texts;
        const bool is_cut = shown.ends_with("…");
        if (is_cut) shown.resize(shown.size() - std::string("…").size());
        const double letters = static_cast<double>(shown.size()) /
                                   static_cast<double>(letter.size()) *
                                   (letter.size() == 1 ? 1 : 2) +
                               (is_cut ? 1 : 0);
        CHECK(letters * ((*it)[1] == "h" ? 7.6 : 6.2) <= std::stod(wide[1]) - 12);
        CHECK(is_cut == (shown != name));
        CHECK((count > 1 || !is_cut));
      }
      CHECK(texts == 2);
    }
}

}  // namespace melflow::test::html_report_test
