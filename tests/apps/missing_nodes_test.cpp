// Nodes that are inserted where a pipeline needs them: segment and batch.
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/apps/process.h"
#include "tests/apps/sound.h"

namespace melflow::missing_nodes_test {

using Json = nlohmann::json;
using namespace melflow::test;

// `nodes` come between decode and write, whose input is `last`.
std::string pipeline(const std::string& nodes, const std::string& last = "mel") {
  return "version: 1\n"
         "graph:\n"
         "  files: {stage: file_list, root: data}\n"
         "  read: {stage: disk_read, from: files}\n"
         "  decode: {stage: decode, from: read}\n" +
         nodes + "  write: {stage: hdf5_write, from: " + last +
         ", path: out.h5, overwrite: true}\n";
}

constexpr const char* kMel = ", sample_rate: 8000, n_fft: 256, hop: 80, n_mels: 20, log: db}\n";

struct Corpus {
  TempFolder folder;
  Corpus() {
    for (unsigned i = 0; i < 12; ++i)
      test::write_clip(folder / "data/a/" + std::to_string(i) + ".wav", 8000, 0.3 + 0.1 * i, i);
  }
  Ended run(const std::string& verb, const std::string& text, std::vector<std::string> more = {}) {
    test::write_text(folder / "p.yaml", text);
    std::vector<std::string> all{MELFLOW_PROGRAM, verb, "p.yaml"};
    all.insert(all.end(), more.begin(), more.end());
    return test::run(folder, all);
  }
  // Returns the nodes of a run in the order of the data, with their stages; and its output.
  Json nodes(const std::string& text, std::vector<std::string> sets = {}) {
    std::vector<std::string> more{"--json"};
    for (std::string& set : sets) more.insert(more.end(), {"--set", std::move(set)});
    const Ended e = exits(0, run("run", text, more));
    report = Json::parse(e.out);
    output = test::read_text(folder / "out.h5");
    Json out = Json::array();
    for (const Json& s : report["stages"]) out.push_back(s["name"].get<std::string>());
    return out;
  }
  Json report;
  std::string output;
};

const Json kAll{"files", "read", "decode", "segment", "batch", "mel", "write"};

TEST_CASE("missing nodes: segment and batch are put in, and the output is the same file") {
  Corpus corpus;
  const std::string mel = std::string("  mel: {stage: mel, from: ");
  const Json written = corpus.nodes(pipeline(
      "  segment: {stage: segment, from: decode}\n  batch: {stage: batch, from: segment}\n" + mel +
      "batch" + kMel));
  const std::string expected = corpus.output;
  CHECK(written == kAll);
  CHECK(corpus.nodes(pipeline(mel + "decode" + kMel)) == kAll);
  CHECK(corpus.output == expected);
  CHECK(corpus.report["config"]["graph"]["batch"]["from"] == "segment");
  CHECK(corpus.nodes(pipeline("  segment: {stage: segment, from: decode}\n" + mel + "segment" +
                              kMel)) == kAll);
  CHECK(corpus.output == expected);
}

TEST_CASE("missing nodes: their options are those of a node of their name, and of --set") {
  Corpus corpus;
  const std::string mel = std::string("  mel: {stage: mel, from: decode") + kMel;
  const auto batches = [&] {
    for (const Json& s : corpus.report["stages"])
      if (s["name"] == "mel") return s["items_in"].get<int>();
    return -1;
  };
  CHECK(corpus.nodes(pipeline("  batch: {files: 3, queue: 7}\n" + mel)) == kAll);
  CHECK(batches() == 4);
  CHECK(corpus.report["config"]["graph"]["batch"]["queue"] == 7);
  CHECK(corpus.nodes(pipeline(mel), {"batch.files=2", "segment.length=2000"}) == kAll);
  CHECK(batches() == 6);
  CHECK(corpus.report["config"]["graph"]["segment"]["length"] == 2000);
  const Ended wrong = exits(78, corpus.run("validate", pipeline("  batch: {fils: 3}\n" + mel)));
  CHECK(has(wrong.err, "p.yaml:6:11: batch.fils: unknown option of batch. Did you mean 'files'?"));
  const Ended set = corpus.run("validate", pipeline(mel), {"--set", "batch.fils=3"});
  CHECK(has(set.err, "--set: batch.fils: unknown option of batch"));
}

TEST_CASE("missing nodes: what takes the same shares them, and another name is found") {
  Corpus corpus;
  const std::string two = std::string("  mel: {stage: mel, from: decode") + kMel +
                          "  wide: {stage: mel, from: decode" + kMel +
                          "  both: {stage: concat, from: [mel, wide]}\n";
  CHECK(corpus.nodes(pipeline(two, "both")) ==
        Json{"files", "read", "decode", "segment", "batch", "mel", "wide", "both", "write"});
  // A window's samples, and whole recordings.
  const std::string other =
      "  segment: {stage: segment, from: decode, length: 800}\n"
      "  cut: {stage: samples, from: segment, sample_rate: 8000}\n"
      "  keep: {stage: hdf5_write, from: cut, path: cut.h5}\n"
      "  mel: {stage: mel, from: decode" +
      std::string(kMel);
  CHECK(corpus.nodes(pipeline(other)) == Json{"files", "read", "decode", "segment", "cut", "keep",
                                              "segment_decode", "batch", "mel", "write"});
}

TEST_CASE("missing nodes: nothing is put in beside a node that nobody takes from") {
  Corpus corpus;
  const Ended e = exits(
      78, corpus.run("validate", pipeline("  segment: {stage: segment, from: decode, length: 512}\n"
                                          "  batch: {stage: batch, from: segment}\n"
                                          "  mel: {stage: mel, from: decode" +
                                          std::string(kMel))));
  CHECK(has(e.err, "write from: batch, since 'batch' (batch) gives them and no node takes those"));
  CHECK(has(exits(78, corpus.run("validate", pipeline("  one: {stage: segment, from: decode}\n"
                                                      "  two: {stage: batch, from: one}\n"
                                                      "  batch: {files: 3}\n"
                                                      "  mel: {stage: mel, from: two" +
                                                      std::string(kMel))))
                .err,
            "batch: 'stage' is missing; without stage and from, batch sets the options of a node"));
  const Ended bytes =
      corpus.run("validate", pipeline("  mel: {stage: mel, from: read" + std::string(kMel)));
  CHECK(has(bytes.err, "write from: decode, since no node takes what 'decode' (decode) gives"));
}

}  // namespace melflow::missing_nodes_test
