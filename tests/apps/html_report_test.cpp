// `--report`: the page of a run without scripts. html_in_browser_test.cpp has the drawings.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <regex>
#include <string>
#include <vector>

#include "apps/report/format.h"
#include "apps/report/html_report.h"
#include "pipeline/base/text.h"
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

std::size_t times(const std::string& text, const std::string& part) {
  std::size_t out = 0;
  for (std::size_t at = 0; (at = text.find(part, at)) != text.npos; at += part.size()) ++out;
  return out;
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
  test::write_text(folder / "data/\xff\u2028.wav", "no sound");
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
    out.json = Json::parse(without_escaped_bytes(test::read_text(folder / "r.json")));
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
  CHECK(has(r.page, "<h1>5 files, 3 ok, 0 skipped, 2 failed</h1>"));
  CHECK(has(r.page, fmt::format("<tr><th>rows<td>{}</tr>", r.json["rows"].get<std::size_t>())));
  CHECK(
      has(r.page, fmt::format("<tr><th>seconds<td>{:.4g}</tr>", r.json["seconds"].get<double>())));
  for (const Json& stage : r.json["stages"]) {
    const std::string name = stage["name"];
    CAPTURE(name);
    CHECK(has(r.page, fmt::format("<tr><td>{}<td>{}<td>{}<td>{}<td>{}<td>{}<td>", name,
                                  stage["stage"].get<std::string>(), stage["concurrency"].dump(),
                                  stage["peak_concurrency"].dump(), stage["items_in"].dump(),
                                  stage["items_out"].dump())));
  }
  CHECK(has(r.page, "<td>failed<td>decode<td>"));
  CHECK(has(r.page, "&quot;n_fft&quot;"));  // the configuration
}

TEST_CASE("html report: what files are called is text, and nothing comes from elsewhere") {
  const TempFolder folder;
  const Reported r = run_with_page(folder);
  REQUIRE(r.ended.code == 3);
  CHECK(has(r.page, "<td>\\xff\\u2028.wav<td>"));
  CHECK(has(r.page, "&lt;script&gt;alert(1)&lt;script&gt;.wav"));
  for (const char* part :
       {"<script>", "<b>0&", "https:", "url(", "@import", "src=", "href=", "\xff", "\u2028"}) {
    CAPTURE(std::string(part));
    CHECK_FALSE(has(r.page, part));
  }
  // The report and the page's own script; no address but the names of HTML and SVG.
  CHECK(times(r.page, "<script") == 2);
  CHECK(times(r.page, "</script") == 2);
  CHECK(times(r.page, "http:") == times(r.page, "http://www.w3.org/"));
  CHECK(has(r.page, R"("\u003cscript>alert(1)\u003cscript>.wav")"));
  // Only the page's own script may run, and the nonce by which it is known is no one else's.
  std::smatch policy;
  REQUIRE(std::regex_search(r.page, policy,
                            std::regex("\"default-src 'none'; style-src 'unsafe-inline'; "
                                       "script-src 'nonce-([0-9a-f]{32})'; media-src data:\"")));
  CHECK(times(r.page, "<script nonce=\"" + policy[1].str() + "\">") == 1);
  CHECK_FALSE(has(html_report(r.json), policy[1].str()));
  CHECK(html_text("a<b>&\"'\x1b[1m") == "a&lt;b&gt;&amp;&quot;&#39;\\u001b[1m");
}

TEST_CASE("html report: the tables of a report that has less, and of one that has too much") {
  Json report{{"melflow_version", "1"},  {"ending", "stopped"},
              {"error", "disk <full>"},  {"files", {{"found", 2}, {"ok", 1}, {"not_run", 1}}},
              {"stages", Json::array()}, {"series", nullptr}};
  CHECK(unbalanced(html_report(report)) == "");
  CHECK(has(html_report(report), "<td>disk &lt;full&gt;</tr>"));
  CHECK(has(html_report(report), "2 files, 1 ok, 0 skipped, 0 failed, 1 not run"));
  for (int i = 0; i < 203; ++i) report["remarks"].push_back({{"path", fmt::format("{}.wav", i)}});
  report["stages"] = {{{"name", "{{title}}"}, {"calls", {{"p50", 1}}}}, {{"name", "{{"}}};
  const std::string page = html_report(report);
  CHECK(unbalanced(page) == "");
  CHECK(has(page,
            "<tr><th>name<th>calls p50</tr>\n<tr><td>{{title}}<td>1</tr>\n<tr><td>{{<td></tr>"));
  CHECK(has(page, "<td>199.wav</tr>"));
  CHECK_FALSE(has(page, "200.wav"));
  CHECK(has(page, "<tr><th>more remarks<td>3</tr>"));
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

}  // namespace melflow::test::html_report_test
