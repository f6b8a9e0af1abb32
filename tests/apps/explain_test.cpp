// `melflow validate --explain`: the plan that a configuration results in.
#include <doctest/doctest.h>

#include <sstream>
#include <string>
#include <vector>

#include "tests/apps/pipelines.h"
#include "tests/apps/process.h"

namespace melflow::test::explain_test {
namespace {

// Returns the words of the line for a node's option: name, value, origin.
std::string line_of(const std::string& text, const std::string& node, const std::string& option) {
  std::istringstream lines(text);
  bool is_there = false;
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("  ")) is_there = line.starts_with(node + " (");
    std::istringstream words(line);
    std::string word, out;
    while (words >> word) out += (out.empty() ? "" : " ") + word;
    if (is_there && out.starts_with(option + " ")) return out.substr(option.size() + 1);
  }
  return "";
}

}  // namespace

TEST_CASE("explain: types on edges, and every option with its value and where that comes from") {
  const TempFolder folder;
  test::write_text(folder / "p.yaml",
                   test::nodes_to_mel("root: data", "preset: whisper, concurrency: 3") +
                       "  write: {stage: hdf5_write, from: mel, path: '${OUT}'}\n");
  const Ended e =
      exits(0, test::run(folder, {MELFLOW_PROGRAM, "validate", "--explain", "p.yaml", "--var",
                                  "OUT=o.h5", "--set", "mel.n_mels=64", "--workers", "2"}));
  for (const char* head : {"files (file_list): gives file\n", "read (disk_read): file → bytes\n",
                           "mel (mel): batch → rows\n", "write (hdf5_write): takes rows\n"})
    CHECK(has(e.out, head));
  CHECK(line_of(e.out, "files", "root") == "\"data\" p.yaml:3:35");
  CHECK(line_of(e.out, "files", "follow_links") == "false default");
  CHECK(line_of(e.out, "read", "concurrency") == "2 auto");
  CHECK(line_of(e.out, "mel", "from") == "batch p.yaml:8:27");
  CHECK(line_of(e.out, "mel", "concurrency") == "3 p.yaml:8:64");
  CHECK(line_of(e.out, "mel", "n_mels") == "64 --set");
  CHECK(line_of(e.out, "mel", "hop") == "160 follows from other options");
  CHECK(line_of(e.out, "mel", "preset") == "\"whisper\" p.yaml:8:42");
  CHECK(line_of(e.out, "write", "path") == "\"o.h5\" p.yaml:9:47");
  CHECK(has(e.out, "\nok, 2 warnings: 7 nodes"));
}

TEST_CASE("explain: outputs of routes, branches that fail alone, nodes that nobody wrote") {
  const TempFolder folder;
  test::write_text(folder / "p.yaml", R"(version: 1
graph:
  files: {stage: file_list, root: data, feed: cache, cache_path: .}
  way: {stage: route, from: read, outputs: {a: {path: "a*"}}, else: b}
  read: {stage: disk_read, from: files}
  da: {stage: decode, from: way.a, on_failure: branch}
  sa: {stage: segment, from: join}
  join: {stage: merge, from: [da, db]}
  db: {stage: decode, from: way.b}
  ba: {stage: batch, from: sa}
  mel: {stage: mel, from: ba, sample_rate: 8000}
  write: {stage: hdf5_write, from: mel, path: o.h5}
)");
  const Ended e = exits(0, test::run(folder, {MELFLOW_PROGRAM, "validate", "--explain", "p.yaml",
                                              "--set", "files.feed=stream"}));
  CHECK(has(e.out, "way (route): bytes → bytes\n"));
  CHECK(line_of(e.out, "da", "from") == "way.a p.yaml:6:29");
  CHECK(line_of(e.out, "da", "on_failure") == "branch p.yaml:6:48");
  CHECK(line_of(e.out, "join", "from") == "da, db p.yaml:8:30");
  CHECK(line_of(e.out, "join", "on_failure") == "branch of a node before it");
  CHECK(line_of(e.out, "way", "else") == "\"b\" p.yaml:4:69");
}

TEST_CASE("explain: without defaults only what somebody set is shown") {
  const TempFolder folder;
  test::write_text(folder / "p.yaml",
                   test::nodes_to_mel("root: data", "preset: whisper, concurrency: 3") +
                       "  write: {stage: hdf5_write, from: mel, path: o.h5}\n");
  const std::vector<std::string> command{MELFLOW_PROGRAM, "validate", "p.yaml", "--no-defaults"};
  CHECK(test::run(folder, command).code == 2);
  std::vector<std::string> with_explain = command;
  with_explain.insert(with_explain.end(), {"--explain", "--set", "mel.n_mels=64"});
  const Ended e = exits(0, test::run(folder, with_explain));
  CHECK(line_of(e.out, "mel", "n_mels") == "64 --set");
  CHECK(line_of(e.out, "mel", "concurrency") == "3 p.yaml:8:64");
  CHECK(line_of(e.out, "mel", "from") == "batch p.yaml:8:27");
  CHECK(line_of(e.out, "mel", "hop").empty());
  CHECK(line_of(e.out, "mel", "queue").empty());
  CHECK(line_of(e.out, "read", "concurrency").empty());
  CHECK_FALSE(has(e.out, "default"));
}

}  // namespace melflow::test::explain_test
