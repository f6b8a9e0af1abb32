// Outputs with impossible numbers: every verb that reads one reports that, and none crashes.
#include <doctest/doctest.h>
#include <sys/stat.h>

#include "tests/apps/pipelines.h"
#include "tests/apps/process.h"
#include "tests/apps/sound.h"
#include "tests/support/python.h"
#include "tests/support/source_path.h"

namespace melflow::test::spoiled_output_test {

namespace fs = std::filesystem;

namespace {

const std::string kMelflow = MELFLOW_PROGRAM;

// Runs the demo with statistics, into HDF5 or .npy.
void make_output(const TempFolder& folder, const std::string& out) {
  std::string text = test::read_text(test::source_path("config/pipelines/demo.yaml"));
  text.replace(text.rfind("path: ${OUT}"), 12,
               "path: ${OUT}\n    statistics: all\n    statistics_by: label");
  if (out.ends_with(".npy")) text.replace(text.rfind("hdf5_write"), 10, "npy_write");
  test::write_text(folder / "update.yaml", text);
  test::write_clip(folder / "data/en/one.wav", 8000, 1.0, 1);
  test::write_clip(folder / "data/en/two.wav", 8000, 0.5, 2);
  test::write_clip(folder / "data/fr/one.wav", 8000, 2.0, 3);
  exits(0, run(folder, {kMelflow, "run", "update.yaml", "-q"}, {{"DATA", "data"}, {"OUT", out}}));
}

struct Row {
  const char *kind, *says;  // "": the file is as good as before
  bool with_all = false;    // all verbs, not only inspect
};

void check_verb(const TempFolder& folder, const Row& row, std::vector<std::string> command,
                const std::string& out) {
  command.insert(command.begin(), kMelflow);
  const Ended e = run(folder, command, {{"DATA", "data"}, {"OUT", out}});
  INFO(std::string(row.kind) << ": " << command[1] << ": " << e.code << "\n" << e.out << e.err);
  CHECK_FALSE(has(e.err, "HDF5-DIAG"));
  CHECK((e.code == 0) == (*row.says == '\0'));
  CHECK(e.code < 128);
  CHECK(has(e.err, row.says));
}

void check_rows(const std::string& name, const std::vector<Row>& rows) {
  const TempFolder folder;
  make_output(folder, name);
  REQUIRE(test::python_says("apps/spoil_output.py",
                            fmt::format("'{}' '{}'", folder / name, folder.path())) == "");
  test::write_text(
      folder / "normalize.yaml",
      test::nodes_to_mel("root: data", "sample_rate: 8000, n_mels: 80, n_fft: 512, log: db") +
          R"(  normalize: {stage: normalize, from: mel, file: "${OUT}"}
  write: {stage: hdf5_write, from: normalize, path: x.h5}
)");
  for (const Row& row : rows) {
    const std::string out = std::string(row.kind) + "/" + name;
    check_verb(folder, row, {"inspect", out, "--json", "--files"}, out);
    if (!row.with_all) continue;
    check_verb(folder, row, {"inspect", out}, out);
    check_verb(folder, row, {"show", out, "--file", "en/one.wav", "-o", "a.svg"}, out);
    check_verb(folder, row, {"compare", out, out}, out);
    check_verb(folder, row, {"validate", "normalize.yaml"}, out);
    check_verb(folder, row, {"update", "update.yaml"}, out);
  }
}

}  // namespace

TEST_CASE("spoiled output: HDF5, each number that a file dictates") {
  check_rows(
      "out.h5",
      {{"attribute of 4096 integers", "", true},
       {"attribute of 2048 texts", ""},
       {"attribute of no value", ""},
       {"format of 4096 integers", "out.h5: this is an HDF5 file, but none that melflow wrote"},
       {"offset that wraps", "en/one.wav has its first row at 9223372036854775807", true},
       {"offset below 0", "en/two.wav has its first row at -5"},
       {"count below 0", "en/one.wav has rows: -1"},
       {"count beyond the rows", "en/two.wav has rows: 4611686018427387904"},
       {"status 77", "en/one.wav has status number 77"},
       {"label 99", "en/one.wav has label number 99"},
       {"duration that is no number", "en/one.wav has a duration of nan s"},
       {"zero bands", "rows of shape [353, 0] have no values"},
       {"no name for the rows", "there is no attribute 'rows'"},
       {"a number as name of the rows", "the attribute rows is not a text"},
       {"rows in a group", "the attribute 'rows' is 'files/offset', which names no dataset"},
       {"rows that are not there", "no dataset /mfcc"},
       {"a fingerprint that is gone", "there is no attribute 'feature_fingerprint'"},
       {"a text as number of files", "the attribute found is not an integer"},
       {"format 0", " in format 0, this program reads format 2 only"},
       {"format 3", " in format 3, this program reads format 2 only"},
       {"one axis", "mel has 1 axes, not 2 or 3"},
       {"rows that are nowhere", "/mel should have 351843720888320 bytes, and there are 0 of it"},
       {"a product that wraps", "/mel cannot have [4611686018427387904, 4] values or bytes"},
       {"paths that are nowhere", "/files/path should have 8796093022208 bytes"},
       {"a column that is nowhere", "/files/offset should have 9007199254740992 bytes"},
       {"two axes that wrap", "/files/count cannot have [4294967296, 4294967296] values"},
       {"frequencies of fewer bands", "there are 3 frequencies of 80 columns"},
       {"a column of texts", "reading /files/count"},
       {"fewer standard deviations", "80 means and 3 standard deviations of 80 columns", true},
       {"fewer means of groups",
        "the statistics by label have 2 names, 2 numbers of frames, 80 means", true},
       {"groups in no order", "or names that are not in order"},
       {"groups that are gone", "/statistics/by_label"},
       {"frames of 4096 integers", "the attribute frames is not an integer"},
       {"rows in another file", "/mel is not stored in the file itself"},
       {"rows that show themselves", "/mel is not stored in the file itself"},
       {"a text beyond its heap", "out.h5: this file is damaged", true},
       {"a text over the next ones", "out.h5: this file is damaged", true},
       {"a text without end", "out.h5: this file is damaged"},
       {"a text too short for what follows", "out.h5: this file is damaged"},
       {"a heap of no bytes", "out.h5: this file is damaged"},
       {"a heap beyond the file", "out.h5: this file is damaged"},
       {"files behind a link",
        "out.h5: this file is damaged, or not as docs/output-format.md describes it"}});
}

TEST_CASE("spoiled output: .npy, each number that its index dictates") {
  const std::string damaged = "out.npy: this file is damaged";
  check_rows("out.npy",
             {{"shape that wraps", damaged.c_str(), true},
              {"shape below 0", damaged.c_str()},
              {"found below 0", damaged.c_str()},
              {"found that wraps", damaged.c_str()},
              {"frequencies of fewer bands", "there are 1 frequencies of 80 columns"},
              {"no name for the rows", "there is no attribute 'rows'"},
              {"a number as name of the rows", damaged.c_str()},
              {"a fingerprint that is gone", "there is no attribute 'feature_fingerprint'"},
              {"a text as number of files", damaged.c_str()},
              {"format 3", "in format 3, this program reads format 2 only"},
              {"format of text", "out.index.json: this is not an index that melflow wrote"},
              {"fewer means", "1 means and 80 standard deviations of 80 columns"},
              {"fewer means of groups",
               "the statistics by label have 2 names, 2 numbers of frames, 80 means", true},
              {"groups without frames", damaged.c_str()},
              {"a pipe as document", "index.json: this is a FIFO, not a file"},
              {"a document that is nested deeply", "nested too deeply"},
              {"offset that wraps", "has its first row at 9223372036854775807", true},
              {"count below 0", "en/one.wav has rows: -1"},
              {"status 77", "en/one.wav has status number 77"}});
}

TEST_CASE("spoiled output: settings that are nested deeply are passed over, pipes are no outputs") {
  const TempFolder folder;
  make_output(folder, "out.h5");
  REQUIRE(test::python_says("apps/spoil_output.py",
                            fmt::format("'{}' '{}'", folder / "out.h5", folder.path())) == "");
  const std::string out = "settings that are nested deeply/out.h5";
  CHECK(run(folder, {kMelflow, "inspect", out, "--json"}).code == 0);
  CHECK(run(folder, {kMelflow, "show", out, "--file", "two.wav", "-o", "a.svg"}).code == 0);
  REQUIRE(mkfifo((folder / "pipe.h5").c_str(), 0600) == 0);
  const Ended e = exits(1, run(folder, {kMelflow, "inspect", "pipe.h5"}));
  CHECK(has(e.err, "pipe.h5: this is a FIFO, not a file"));
}

}  // namespace melflow::test::spoiled_output_test
