// melflow test: tests in the YAML. Calculations of expected values are beside each: a band of
// silence has the floor of its logarithm, 10 log10(1e-10) = -100 dB.
#include <doctest/doctest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "tests/apps/pipelines.h"
#include "tests/apps/process.h"
#include "tests/apps/sound.h"

namespace melflow::test::pipeline_tests_test {
namespace {

namespace fs = std::filesystem;

// 8 kHz, frames of 256 samples every 80, the first centred on sample 0: 101 in a second.
constexpr const char* kMel =
    "preset: librosa, sample_rate: 8000, n_fft: 256, win_length: 256, hop: 80, n_mels: 20, log: "
    "db, top_db: 80";
constexpr const char* kWrite = "  write: {stage: hdf5_write, from: mel, path: '${OUT}'}\n";
constexpr const char* kSilence = "{stage: synthetic, kind: silence, rate: 8000, count: 3}";

// Writes a pipeline whose data and output are variables without values, with one test.
void write_pipeline(const TempFolder& folder, const std::string& input, const std::string& expect,
                    const std::string& more = "") {
  write_text(folder / "p.yaml", test::nodes_to_mel("root: '${DATA}'", kMel) + kWrite +
                                    fmt::format("tests:\n  one:\n    input: {}\n{}    expect: {}\n",
                                                input, more, expect));
}

}  // namespace

TEST_CASE("test: a pipeline does what its tests say") {
  const TempFolder folder;
  write_pipeline(
      folder, kSilence,
      "\n      ok: 3\n      skipped: 0\n      failed: 0\n      outputs:\n        write:\n"
      "          rows: 303\n          shape: [303, 20]\n          dtype: float32\n"
      "          files: {silence/000000.wav: 101, silence/000001.wav: 101, "
      "silence/000002.wav: 101}\n"
      "          values:\n"
      "            - {file: silence/000001.wav, equal: -100}\n"
      "            - {file: silence/000002.wav, row: 100, column: 18, equal: [-100, "
      "-100.001], within: 0.01}\n");
  const Ended e = exits(0, melflow_in(folder, {"test", "p.yaml"}));
  CHECK(e.err.empty());
  CHECK(e.out.starts_with("ok   "));
  CHECK(has(e.out, " s  p.yaml: one\n1 test: 1 passed, 0 failed\n"));
  // No files are left, and the tests are neither part of a run nor of its output.
  CHECK(names_in(folder.path()) == Names{".stderr", ".stdout", "p.yaml"});
  fs::create_directory(folder / "data");
  test::write_clip(folder / "data/a.wav", 8000, 1);
  CHECK(melflow_in(folder, {"run", "p.yaml", "--var", "DATA=data", "--var", "OUT=o.h5"}).code == 0);
  CHECK_FALSE(has(melflow_in(folder, {"inspect", "o.h5", "--json"}).out, "tests"));
}

TEST_CASE("test: everything that is not as expected has its line") {
  const TempFolder folder;
  struct Row {
    std::string expect, line;
  };
  const std::string a = "silence/000000.wav", b = "silence/000001.wav", c = "silence/000002.wav";
  const auto output = [](const std::string& text) { return "{outputs: {write: {" + text + "}}}"; };
  const Row rows[] = {
      {"{ok: 2}", "ok: 3 files, expected 2"},
      {"{skipped: 1}", "skipped: 0 files, expected 1"},
      {"{failed: 1}", "failed: 0 files, expected 1"},
      {"{error: 'no space'}", "the run did not fail, expected the error \"no space\""},
      {"{remarks: {" + a + ": 'decode: failed'}}",
       a + ": there is no message about it, expected \"decode: failed\""},
      {output("rows: 302"), "write: 303 rows, expected 302"},
      {output("shape: [303, 21]"), "write: the shape is [303, 20], expected [303, 21]"},
      {output("dtype: float16"), "write: dtype is float32, expected float16"},
      {output("files: [" + a + ", " + b + "]"),
       "write: has " + c + ", which is not expected in it"},
      {output("files: {" + a + ": 101, " + b + ": 101, " + c + ": 0}"),
       "write: has " + c + ", which is not expected in it"},
      {output("files: [" + a + ", " + b + ", " + c + ", d.wav]"), "write: has nothing of d.wav"},
      {output("files: {" + a + ": 100, " + b + ": 101, " + c + ": 101}"),
       "write: " + a + " has 101 rows, expected 100"},
      {output("values: {file: d.wav, equal: 1}"), "write: has nothing of d.wav"},
      {output("values: {file: " + a + ", row: 101, equal: 1}"),
       "write: " + a +
           " has rows 0 to 100 of 20 values; row 101, column 0 with 1 values is not "
           "among them"},
      {output("values: {file: " + a + ", column: 19, equal: [1, 2]}"),
       "write: " + a +
           " has rows 0 to 100 of 20 values; row 0, column 19 with 2 values is not "
           "among them"},
      {output("values: {file: " + a + ", row: 7, column: 3, equal: [-100, -99, -98]}"),
       "write: " + a + ", row 7, column 4: -"},
      {output("values: {file: " + a + ", row: 7, equal: [-100, -99, -98]}"),
       ", expected -99 within 1e-05; 2 of 3 values differ, by up to "},
      {output("values: {file: " + a + ", equal: none.npy}"), "none.npy"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.expect);
    write_pipeline(folder, kSilence, row.expect);
    const Ended e = exits(4, melflow_in(folder, {"test", "p.yaml"}));
    CHECK(e.out.starts_with("FAILED "));
    CHECK(has(e.out, row.line));
    CHECK(has(e.out, "1 test: 0 passed, 1 failed\n"));
  }
}

TEST_CASE("test: real recordings, where the YAML says, from any folder") {
  const TempFolder folder;
  fs::create_directories(folder / "here/clips");
  fs::create_directory(folder / "elsewhere");
  test::write_clip(folder / "here/clips/a.wav", 8000, 1);
  test::write_clip(folder / "here/clips/b.wav", 8000, 2);
  write_text(folder / "here/clips/broken.wav", "no sound");
  write_text(folder / "here/list.csv", "path\nclips/b.wav\n");
  const std::string expect =
      "{ok: 2, failed: 1, remarks: {broken.wav: 'decode: failed'}, outputs: {write: {files: "
      "{a.wav: 101, b.wav: 201}}}}";
  write_text(folder / "here/p.yaml",
             test::nodes_to_mel("root: '${DATA}'", kMel) + kWrite +
                 "tests:\n  folder: {input: {root: clips}, expect: " + expect +
                 "}\n"
                 "  list: {input: {root: ., manifest: list.csv}, expect: {ok: 1, outputs: {write: "
                 "{files: [clips/b.wav]}}}}\n"
                 "  all broken: {input: {root: clips, include: ['broken*']}, "
                 "expect: {error: 'all files failed (1)', failed: 1}}\n"
                 "  said otherwise: {input: {root: clips}, expect: {remarks: {broken.wav: 'mel: "
                 "failed'}}}\n");
  const Ended e = exits(4, melflow_in(folder, {"test", "here/p.yaml", "--json"}));
  const auto json = nlohmann::json::parse(e.out);
  CHECK(json["passed"] == 3);
  CHECK(json["failed"] == 1);
  REQUIRE(json["tests"].size() == 4);
  for (const std::size_t i : {0, 1, 2}) CHECK(json["tests"][i]["failures"].empty());
  CHECK(json["tests"][3]["name"] == "said otherwise");
  CHECK(has(json["tests"][3]["failures"][0].get<std::string>(), "broken.wav: \"decode: failed: "));
  // Runs one test by its name, and with another value of an option.
  const Ended one = exits(0, melflow_in(folder, {"test", "here/p.yaml", "--name", "list"}));
  CHECK(has(one.out, "1 test: 1 passed"));
  const Ended set = exits(
      4, melflow_in(folder, {"test", "here/p.yaml", "--name", "folder", "--set", "mel.hop=160"}));
  CHECK(has(set.out, "a.wav has 51 rows, expected 101"));
}

TEST_CASE("test: branches, options and variables of a test, and a reference by numpy") {
  const TempFolder folder;
  fs::create_directories(folder / "clips");
  test::write_clip(folder / "clips/short.wav", 8000, 1);
  test::write_clip(folder / "clips/long.wav", 8000, 3);
  std::string nodes = test::nodes_to_mel("root: '${DATA}'", kMel);
  nodes.replace(
      nodes.find("  segment:"), std::string::npos,
      fmt::format("  way: {{stage: route, from: decode, outputs: {{long: {{duration: '>= "
                  "2s'}}}}, else: short}}\n"
                  "  l_segment: {{stage: segment, from: way.long}}\n"
                  "  l_batch: {{stage: batch, from: l_segment}}\n"
                  "  l_mel: {{stage: mel, from: l_batch, {0}}}\n"
                  "  l_write: {{stage: npy_write, from: l_mel, path: '${{OUT}}.npy'}}\n"
                  "  s_write: {{stage: audio_write, from: way.short, path: '${{OUT}}'}}\n",
                  kMel));
  write_text(folder / "p.yaml",
             nodes +
                 "workers: ${WORKERS}\n"
                 "tests:\n"
                 "  routed:\n"
                 "    input: {root: clips}\n"
                 "    vars: {WORKERS: 1}\n"
                 "    set: {l_mel.n_mels: 30}\n"
                 "    expect:\n"
                 "      outputs:\n"
                 "        l_write: {files: {long.wav: 301}, shape: [301, 30], values: {file: "
                 "long.wav, row: 299, equal: last.npy, within: 200}}\n"
                 "        s_write: {files: [short.wav]}\n");
  std::string npy("\x93NUMPY\1\0\x76\0", 10);
  npy += "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 30), }";
  npy.resize(127, ' ');
  npy += "\n" + std::string(240, '\0');
  write_text(folder / "last.npy", npy);
  exits(0, melflow_in(folder, {"test", "p.yaml", "--keep", "kept"}));
  CHECK(fs::exists(folder / "kept/00-routed/l_write/rows.npy"));
  CHECK(fs::exists(folder / "kept/00-routed/s_write/short.wav"));
  const Ended again = exits(2, melflow_in(folder, {"test", "p.yaml", "--keep", "kept"}));
  CHECK(has(again.err, "--keep: kept is there and not empty"));
  // A reference of another length, and one that is too close.
  std::string text = test::read_text(folder / "p.yaml");
  text.replace(text.find("row: 299"), 8, "row: 298");
  text.replace(text.find("within: 200"), 11, "within: 1e-3");
  write_text(folder / "p.yaml", text);
  const Ended wrong = exits(4, melflow_in(folder, {"test", "p.yaml"}));
  CHECK(has(wrong.out, "l_write: long.wav has 301 rows, last.npy has 2 from row 298 on"));
  CHECK(has(wrong.out, "60 of 60 values differ"));
}

TEST_CASE("test: tests that are written wrong are problems, also for validate, each at its place") {
  const TempFolder folder;
  struct Row {
    std::string input, expect, problem;
  };
  const Row rows[] = {
      {"5", "{ok: 1}", "p.yaml:12:12: tests.one.input: write options of the source"},
      {kSilence, "{okay: 1}", "tests.one.expect.okay: unknown option"},
      {kSilence, "{ok: -1}", "tests.one.expect.ok: -1 is out of range; allowed: at least 0"},
      {kSilence, "", "tests.one.expect"},
      {kSilence, "{remarks: [a]}", "tests.one.expect.remarks: this is not a map"},
      {kSilence, "{remarks: {a: [b]}}", "tests.one.expect.remarks.a: write a part of the message"},
      {kSilence, "{outputs: {write: 5}}", "tests.one.expect.outputs.write: this is not a map"},
      {kSilence, "{outputs: {write: {row: 5}}}",
       "tests.one.expect.outputs.write.row: unknown option. Did you mean 'rows'?"},
      {kSilence, "{outputs: {write: {files: {a.wav: many}}}}",
       "tests.one.expect.outputs.write.files.a.wav: 'many' is not an integer"},
      {kSilence, "{outputs: {write: {values: [5]}}}",
       "tests.one.expect.outputs.write.values: write a list of {file: PATH"},
      {kSilence, "{outputs: {write: {values: {equal: 5}}}}",
       "tests.one.expect.outputs.write.values.file: is missing"},
      {kSilence, "{outputs: {write: {values: {file: a.wav, equal: loud}}}}",
       "tests.one.expect.outputs.write.values.equal: write a number, a list of numbers"},
      {kSilence, "{outputs: {write: {values: {file: a.wav}}}}",
       "p.yaml:13:40: tests.one.expect.outputs.write.values.equal: write a number, a list of "
       "numbers"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.expect);
    write_pipeline(folder, row.input, row.expect);
    for (const char* verb : {"test", "validate"}) {
      const Ended e = exits(78, melflow_in(folder, {verb, "p.yaml"}));
      CHECK(has(e.err, row.problem));
    }
  }
}

TEST_CASE("test: nothing is written outside of the test's folder, whatever the test sets") {
  const TempFolder folder;
  write_text(folder / "precious.h5", "precious");
  write_pipeline(folder, kSilence, "{ok: 3}",
                 "    set: {write.path: precious.h5, write.overwrite: true, files.feed: cache, "
                 "files.cache_path: cache}\n");
  exits(0, melflow_in(folder, {"test", "p.yaml"}));
  CHECK(test::read_text(folder / "precious.h5") == "precious");
  CHECK_FALSE(fs::exists(folder / "cache"));
}

TEST_CASE("test: what cannot be tested is said, and other tests go on") {
  const TempFolder folder;
  struct Row {
    std::string input, expect, line;
  };
  const Row rows[] = {
      {kSilence, "{outputs: {wirte: {rows: 1}}}",
       "p.yaml:11:3: tests.one.expect.outputs.wirte: the pipeline has no such output; it has "
       "write. Did you mean 'write'?"},
      {"{stage: disk_read}", "{ok: 1}",
       "tests.one.input.stage: a pipeline that begins with file_list can have input of file_list "
       "or synthetic"},
      {"{stage: synthetic, kind: loud}", "{ok: 1}", "made.kind: 'loud' is not one of tone"},
      {"{rooot: x}", "{ok: 1}", "Did you mean 'root'"},
      {"{root: nowhere}", "{ok: 1}", "nowhere"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.line);
    write_pipeline(folder, row.input, row.expect);
    const Ended e = exits(4, melflow_in(folder, {"test", "p.yaml"}));
    CHECK(has(e.out, row.line));
  }
  write_pipeline(folder, kSilence, "{ok: 3}");
  const Ended unknown = exits(2, melflow_in(folder, {"test", "p.yaml", "--name", "two"}));
  CHECK(has(unknown.err, "--name: there is no test 'two'; there are one"));
}

}  // namespace melflow::test::pipeline_tests_test
