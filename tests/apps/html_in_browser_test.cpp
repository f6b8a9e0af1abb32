// Shows pages in a browser: what their script draws, and that it does not complain.
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <regex>
#include <string>
#include <vector>

#include "apps/report/html_report.h"

#include "tests/apps/pipelines.h"
#include "tests/apps/process.h"
#include "tests/support/audio_files.h"
#include "tests/support/skip.h"

namespace melflow::test::html_in_browser_test {
namespace {

Ended browse(const TempFolder& folder, const std::string& page) {
  return test::run(folder,
                   {"/bin/sh", "-c",
                    "HOME=$PWD timeout 60 chromium --headless --no-sandbox --disable-gpu "
                    "--disable-dev-shm-usage --user-data-dir=$PWD/profile --enable-logging=stderr "
                    "--dump-dom " +
                        page});
}

using Json = nlohmann::ordered_json;

// The page as a browser shows it, after a further script; "" where there is no browser.
std::string shown(const TempFolder& folder, const Json& report, const std::string& script = "") {
  static const bool has_browser = browse(folder, "about:blank").code == 0;
  if (!has_browser) {
    test::skip("chromium is not installed, or does not start here");
    return "";
  }
  std::string page = html_report(report);
  const std::size_t at = page.find("'nonce-") + 7;
  page +=
      "<script nonce=\"" + page.substr(at, page.find('\'', at) - at) + "\">" + script + "</script>";
  test::write_text(folder / "r.html", page);
  const Ended ended = exits(0, browse(folder, "file://$PWD/r.html"));
  CHECK_FALSE(has(ended.err, "CONSOLE"));
  CHECK_FALSE(has(ended.out, "id=\"tables\""));  // removed when all is drawn
  return ended.out.substr(0, ended.out.find("<script"));
}

}  // namespace

TEST_CASE("check: a browser draws its page without a word on its console") {
  const TempFolder folder;
  if (browse(folder, "about:blank").code != 0)
    return test::skip("chromium is not installed, or does not start here");
  std::filesystem::create_directories(folder / "data");
  std::vector<float> quiet(8 * 8000, 0.0F);
  quiet[100] = 0.5F;
  test::write_audio(folder / "data/a.wav", test::audio_kind("wav s16"), 8000, quiet);
  test::write_wav(folder / "data/b.wav", 8000, 8000);
  test::write_wav(folder / "data/c.wav", 40'000, 8000);
  std::filesystem::copy(folder / "data/c.wav", folder / "data/d.wav");
  exits(0, test::run(folder,
                     {MELFLOW_PROGRAM, "check", "data", "--report", "r.html", "--duplicates"}));
  const Ended shown = exits(0, browse(folder, "file://$PWD/r.html"));
  CHECK_FALSE(has(shown.err, "CONSOLE"));
  CHECK_FALSE(has(shown.out, "id=\"tables\""));  // removed when all is drawn
  const std::string drawn = shown.out.substr(0, shown.out.find("<script"));
  CHECK(has(drawn, "silent_longest: 1 recording not &lt; 2s"));
  CHECK(has(drawn, "<canvas"));
  CHECK(has(drawn, "<audio controls"));
  CHECK(has(drawn, "histogram of peak"));
  CHECK(has(drawn, "same samples: 5.00 s"));
  CHECK(has(drawn, "waveform and spectrogram of d.wav"));
}

TEST_CASE("html report: a browser shows it without a word on its console") {
  const TempFolder folder;
  if (browse(folder, "about:blank").code != 0)
    return test::skip("chromium is not installed, or does not start here");
  std::filesystem::create_directories(folder / "data");
  test::write_wav(folder / "data/a.wav", 8000, 8000);
  test::write_text(folder / "p.yaml",
                   test::nodes_to_mel("root: data", "sample_rate: 8000, n_fft: 256") +
                       "  write: {stage: hdf5_write, from: mel, path: o.h5}\n");
  exits(0, test::run(folder, {MELFLOW_PROGRAM, "run", "p.yaml", "--report", "r.html"}));
  const Ended shown = exits(0, browse(folder, "file://$PWD/r.html"));
  // The browser's view of the page, which has a title, drawings and a table.
  CHECK(has(shown.out, "<title>melflow: 1 file, 1 ok, 0 skipped, 0 failed</title>"));
  CHECK(has(shown.out, "class=\"h\">write</text>"));
  CHECK(has(shown.out, "</details>"));
  CHECK_FALSE(has(shown.out, "id=\"tables\""));
  CHECK_FALSE(has(shown.err, "CONSOLE"));
}

TEST_CASE("html report: a browser draws what a report has, with texts as texts") {
  const TempFolder folder;
  const std::string page =
      shown(folder, {{"melflow_version", "1"},
                     {"ending", "stopped"},
                     {"error", "disk </script><b>full\xff\u2028\u202e\x1b"},
                     {"seconds", 0.5},
                     {"rows", 12345},
                     {"files", {{"found", 2}, {"ok", 1}, {"not_run", 1}}},
                     {"stages", {{{"name", "read"}}, {{"name", "mel"}}}},
                     {"series",
                      {{"seconds", {0.1, 0.2, 0.4}},
                       {"files", {0, 10, 10}},
                       {"workers",
                        {{"from", 0.1},
                         {"step", 0.2},
                         {"rows", {{{"read", {0.5, 0}}, {"mel", {0.25, 1}}}, Json::object()}}}}}}});
  if (page.empty()) return;
  CHECK(has(page, "<h1>2 files, 1 ok, 0 skipped, 0 failed, 1 not run</h1>"));
  CHECK(has(page, "was stopped"));
  CHECK(has(page, "<b>12,345</b>rows"));
  CHECK(has(page, R"(disk &lt;/script&gt;&lt;b&gt;full\xff\u2028\u202e\u001b</p>)"));
  // 100 files per second from 0.1 to 0.2 s, then none: axes of 0.5 s and 100 per second.
  CHECK(has(page, "M408.0,26.0L752.0,136.0"));
  CHECK_FALSE(has(page, "NaN"));
  CHECK_FALSE(has(page, "undefined"));
  // Row 1 from 26 to 48: `read` fills its lower half from 0.1 to 0.3 s; `mel` adds a quarter, then
  // fills all of it.
  CHECK(has(page, "M236.0,37.0H580.0V48.0H236.0Z"));
  CHECK(has(page, "M236.0,31.5H580.0V37.0H236.0ZM580.0,26.0H924.0V48.0H580.0Z"));
}

TEST_CASE("html report: in a browser, an axis of time has round labels, and room for the last") {
  const std::regex label("<text x=\"([0-9.]+)\" y=\"152.0\" class=\"x\">([0-9.]+) s</text>");
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
    const TempFolder folder;
    std::string page =
        shown(folder, {{"seconds", row.end},
                       {"files", Json::object()},
                       {"series", {{"seconds", {0, row.end / 2, row.end}}, {"files", {0, 1, 2}}}}});
    if (page.empty()) return;
    page = page.substr(page.find(">Files<"));
    page.resize(page.find("</svg>"));
    std::vector<std::string> labels;
    double last = 0;
    for (std::sregex_iterator it(page.begin(), page.end(), label), end; it != end; ++it) {
      labels.push_back((*it)[2]);
      last = std::stod((*it)[1]) + 3.5 * static_cast<double>(labels.back().size() + 2);
    }
    CHECK(labels == row.labels);
    CHECK(last <= 956);  // the drawing's width, and half of a label whose letters are 7 wide
  }
}

// How far each text of a box is outside it, by the browser's measure.
constexpr const char* kMeasure = R"(
  for (const node of document.querySelectorAll("svg g")) {
    const box = node.querySelector("rect").getBBox();
    for (const text of node.querySelectorAll("text")) {
      const {x, y, width, height} = text.getBBox();
      text.dataset.outside = Math.max(box.x - x, x + width - box.x - box.width, y + height - box.y - box.height).toFixed(1);
    }
  })";

struct Text {
  std::string drawn;
  double outside = 0;
};
std::vector<Text> texts_of_boxes(const std::string& page) {
  const std::regex text("data-outside=\"(-?[0-9.]+)\">([^<]*)<");
  std::vector<Text> out;
  for (std::sregex_iterator it(page.begin(), page.end(), text), end; it != end; ++it)
    out.push_back({(*it)[2], std::stod((*it)[1])});
  return out;
}

TEST_CASE("html report: in a browser, the texts of a graph are in their boxes") {
  const TempFolder folder;
  const std::vector<std::string> names{"items", "recordings_without_background_music",
                                       "WWWWWWWWWWWWWWWWWWWWWWWWWWWW",
                                       "iiiiiiiiiiiiiiiiiiiiiiiiiiii"};
  Json stages = Json::array();
  for (const std::string& name : names)
    stages.push_back(
        {{"name", name}, {"stage", name}, {"options", {"columns: [a_column, another]"}}});
  const Json edge{{"from", names[0]}, {"to", names[1]}, {"label", "train"}};
  const std::string page =
      shown(folder, {{"stages", stages}, {"edges", Json::array({edge})}}, kMeasure);
  if (page.empty()) return;
  CHECK_FALSE(has(page, "<h1>"));
  CHECK(has(page, "class=\"x\">train<"));
  const std::vector<Text> texts = texts_of_boxes(page);
  CHECK(texts.size() == 3 * names.size());
  for (const Text& text : texts) {
    CAPTURE(text.drawn);
    CHECK(text.outside <= 0);
  }
  CHECK(texts[1].drawn == "items");
  CHECK(texts[6].drawn.ends_with("W…"));
  CHECK(texts[9].drawn == names[3]);  // narrow letters need no cut
}

TEST_CASE("html report: in a browser, texts of wide letters are in the boxes of a graph") {
  const TempFolder folder;
  const std::vector<std::string> letters{"a", "音", "한", "Ａ", "🎵", "🚀", "⏳"};
  Json stages = Json::array();
  for (const std::string& letter : letters)
    for (const int count : {1, 8, 17, 18, 40}) {
      std::string name;
      for (int i = 0; i < count; ++i) name += letter;
      stages.push_back({{"name", name}, {"stage", name}, {"options", Json::array()}});
    }
  const std::string page = shown(folder, {{"stages", stages}, {"edges", Json::array()}}, kMeasure);
  if (page.empty()) return;
  const std::vector<Text> texts = texts_of_boxes(page);
  REQUIRE(texts.size() == 2 * stages.size());
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const std::string& name = stages.at(i / 2)["name"].get_ref<const std::string&>();
    std::string cut = texts[i].drawn;
    CAPTURE(cut);
    CHECK(texts[i].outside <= 0);
    const bool is_cut = cut.ends_with("…");
    if (is_cut) cut.resize(cut.size() - std::string("…").size());
    CHECK(name.starts_with(cut));
    CHECK(is_cut == (cut != name));
    CHECK((name != letters[i / 10] || !is_cut));
  }
}

TEST_CASE("html report: in a browser, functions have their names, and no nodes no drawing") {
  const TempFolder folder;
  const Json calls{{"python", {{"call", "@f.<locals>.half-0a4b:here"}}},
                   {"python_2", {{"call", "my_module:louder"}}},
                   {"own", {{"call", "my_module:softer"}}}};
  Json stages = Json::array();
  for (const auto& [name, call] : calls.items())
    stages.push_back({{"name", name}, {"stage", "python"}, {"options", Json::array()}});
  const std::string page =
      shown(folder, {{"stages", stages}, {"edges", Json::array()}, {"config", {{"graph", calls}}}},
            kMeasure);
  if (page.empty()) return;
  std::vector<std::string> drawn;
  for (const Text& text : texts_of_boxes(page)) drawn.push_back(text.drawn);
  CHECK(drawn == std::vector<std::string>{"half", "python", "louder", "python_2", "own", "python"});

  const std::string none = shown(folder, {{"stages", Json::array()}, {"edges", Json::array()}});
  CHECK_FALSE(has(none, "<svg"));
  CHECK(has(none, "a graph without nodes"));
}

}  // namespace melflow::test::html_in_browser_test
