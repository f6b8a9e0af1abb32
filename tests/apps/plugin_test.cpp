// Plug-ins: the ways to name them, what is refused, and that configurations stored in files load
// none by themselves.
#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "pipeline/base/version.h"
#include "tests/apps/pipelines.h"
#include "tests/apps/process.h"
#include "tests/support/audio_files.h"

namespace melflow::test::plugin_test {

namespace fs = std::filesystem;

namespace {

using Words = std::vector<std::string>;

Words operator+(Words a, const Words& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

// Writes a copy of the plug-in with every `from` replaced by `to`, which has the same length.
void write_changed(const std::string& path, const std::string& from, const std::string& to) {
  std::string bytes = read_text(MELFLOW_PLUGIN);
  REQUIRE(from.size() == to.size());
  REQUIRE(bytes.find(from) != bytes.npos);
  for (std::size_t at = 0; (at = bytes.find(from, at)) != bytes.npos;)
    bytes.replace(at, to.size(), to);
  write_text(path, bytes);
}

// loudness.so, recordings in data/, and pipelines with the stage: p.yaml, and named.yaml, which
// names the plug-in itself.
struct Example {
  TempFolder folder;

  Example() {
    fs::copy_file(MELFLOW_PLUGIN, folder / "loudness.so");
    fs::create_directories(folder / "data");
    for (unsigned i = 0; i < 4; ++i)
      write_wav(folder / fmt::format("data/{}.wav", i), 30000, 8000, i);
    std::string text = nodes_to_mel("root: data", "sample_rate: 8000, n_fft: 256, hop: 80") +
                       "  loudness: {stage: loudness, from: decode}\n"
                       "  write: {stage: hdf5_write, from: mel, path: o.h5, overwrite: true}\n";
    text.replace(text.find("segment, from: decode"), 21, "segment, from: loudness");
    write_text(folder / "p.yaml", text);
    write_text(folder / "named.yaml", "plugins: loudness.so\n" + text);
  }
  [[nodiscard]] Ended run(const Words& words, const Process::Variables& set = {}) const {
    return melflow_in(folder, words, set);
  }
};

const Words kGiven{"--plugin", "loudness.so"};

}  // namespace

TEST_CASE("plug-in: given before or after the verb, by the environment or the pipeline") {
  const Example example;
  const std::string missing =
      "loudness: unknown stage 'loudness'; `melflow stages` lists all "
      "stages, and --plugin FILE adds those of a plug-in";
  CHECK(has(exits(78, example.run({"validate", "p.yaml"})).err, missing));
  exits(0, example.run(kGiven + Words{"run", "p.yaml", "-q"}));
  exits(0,
        example.run({"validate", "p.yaml", "--plugin=./loudness.so", "--plugin", "loudness.so"}));
  exits(0, example.run({"--plugin=loudness.so", "validate", "p.yaml"}));
  exits(0, example.run({"validate", "p.yaml"}, {{"MELFLOW_PLUGINS", ":loudness.so"}}));
  exits(0, example.run({"validate", "named.yaml"}));
  exits(0, example.run({"validate", "p.yaml", "--set", "plugins=loudness.so"}));
  // Its options are checked as those of any other.
  const Words wrong{"validate", "named.yaml", "--set", "loudness.warn_db=-70"};
  CHECK(has(exits(78, example.run(wrong)).err, "loudness.warn_db: -70 is below min_db, -60"));
}

TEST_CASE("plug-in: stages say where they are from, and outputs what they need") {
  const Example example;
  CHECK(has(example.run(kGiven + Words{"stages"}).out,
            "and warns about very loud ones. (loudness.so)\n"));
  CHECK(has(example.run(kGiven + Words{"stages", "loudness"}).out, "(loudness.so)\n\n  waveform"));
  CHECK(has(example.run(kGiven + Words{"stages", "--markdown"}).out,
            "none out; of the plug-in `loudness.so`."));
  CHECK(has(example.run(kGiven + Words{"stages", "--json-schema"}).out,
            "very loud ones. (loudness.so)\""));
  exits(0, example.run({"run", "p.yaml", "-q"}, {{"MELFLOW_PLUGINS", "./loudness.so"}}));
  CHECK(has(example.run({"inspect", "o.h5", "--json"}).out, "\"plugins\": [\n"));
  // Not those that no node is of.
  write_text(example.folder / "without.yaml",
             "plugins: [loudness.so]\n" +
                 nodes_to_mel("root: data", "sample_rate: 8000, n_fft: 256, hop: 80") +
                 "  write: {stage: hdf5_write, from: mel, path: without.h5}\n");
  exits(0, example.run({"run", "without.yaml", "-q"}));
  CHECK_FALSE(has(example.run({"inspect", "without.h5", "--json"}).out, "plugins"));
}

TEST_CASE("plug-in: what is none is refused, with a reason") {
  const Example example;
  const TempFolder& folder = example.folder;
  write_text(folder / "text.so", "a text");
  fs::create_directories(folder / "folder.so");
  fs::copy_file(MELFLOW_FAKE_NVML, folder / "other.so");
  fs::copy_file(folder / "loudness.so", folder / "twice.so");
  const std::string version(kVersion), node = "MELFLOW_" + version.substr(0, version.rfind('.'));
  write_changed(folder / "version.so", node, node.substr(0, node.size() - 1) + "x");
  write_changed(folder / "library.so", "St6vectorIiSaIiEE", "St6vectorIjSaIjEE");
  write_changed(folder / "symbol.so", "number_text", "number_next");
  write_changed(folder / "clash.so", "loudness", "resample");
  write_changed(folder / "needs.so", "libmelflow.so.0", "libmelflow.so.7");
  struct Row {
    std::string plugin, said;
  };
  for (const Row& row : {
           Row{"loudnes.so", "loudnes.so: there is no such file. Did you mean 'loudness.so'?"},
           {"text.so", "text.so: cannot be loaded: file too short"},
           {"folder.so", "folder.so: this is a folder, not a file"},
           {"p.yaml/x.so", "p.yaml/x.so: cannot be loaded: Not a directory"},
           {"other.so", "other.so: is no plug-in of melflow: it registers no stage"},
           {"version.so",
            fmt::format("version.so: was built for melflow {}x, and this is {}; build it again "
                        "with this version",
                        node.substr(8, node.size() - 9), version)},
           {"needs.so", "needs.so: was built for melflow 7, and this is"},
           {"library.so", "library.so: was built with another C++ library than melflow"},
           {"symbol.so", "symbol.so: needs melflow::number_next[abi:cxx11](double)"},
           {"clash.so", "clash.so: its stage 'resample' exists already, built in"},
       }) {
    CAPTURE(row.plugin);
    const Words given{"--plugin", row.plugin};
    CHECK(has(exits(78, example.run(given + Words{"stages"})).err, "--plugin: " + row.said));
    const Ended named = example.run({"validate", "p.yaml", "--set", "plugins=" + row.plugin});
    CHECK(has(exits(78, named).err, "plugins: " + row.said));
    CHECK_FALSE(has(named.err, "unknown stage"));
    CHECK(has(exits(78, example.run({"stages"}, {{"MELFLOW_PLUGINS", row.plugin}})).err,
              "MELFLOW_PLUGINS: " + row.said));
  }
  CHECK(has(exits(78, example.run(kGiven + Words{"stages", "--plugin", "twice.so"})).err,
            "twice.so: its stage 'loudness' exists already, loaded from loudness.so"));
  CHECK(has(exits(78, example.run({"stages", "--plugin", ""})).err,
            "--plugin: '': write the path of a plug-in, such as ./loudness.so"));
  CHECK(has(exits(2, example.run(kGiven)).err, "a command is missing"));
}

TEST_CASE("plug-in: of a configuration that an output has only what the user gives or trusts") {
  const Example example;
  const TempFolder& folder = example.folder;
  exits(0, example.run({"run", "named.yaml", "-q"}));
  const std::string output = read_text(folder / "o.h5");
  // Given from elsewhere, under the same name.
  fs::create_directories(folder / "mine");
  fs::copy_file(folder / "loudness.so", folder / "mine/loudness.so");
  const Words given{"--plugin", "mine/loudness.so"};
  const std::string refused =
      "plugins: loudness.so: this configuration would load the plug-in, which is code chosen by "
      "the "
      "author of the file; give your own with --plugin FILE, or load it with --trust";

  const Words verify{"verify", "o.h5", "--recompute", "100%"};
  CHECK(has(exits(78, example.run(verify)).err, "o.h5: config:1:"));
  CHECK(has(example.run(verify).err, refused));
  CHECK(has(exits(0, example.run(verify + Words{"--trust"})).out, "those of 4 files are the same"));
  CHECK(has(exits(2, example.run({"verify", "o.h5", "--trust"})).err, "--recompute"));
  exits(0, example.run(verify + given));
  exits(0, example.run(verify, {{"MELFLOW_PLUGINS", "mine/loudness.so"}}));

  // Changes a byte of a row.
  const auto spoil = [&] {
    std::string spoiled = output;
    spoiled[spoiled.size() / 2] ^= 16;
    write_text(folder / "o.h5", spoiled);
    REQUIRE(example.run({"verify", "o.h5"}).code == 1);
  };
  const Words repair{"repair", "o.h5"};
  spoil();
  CHECK(has(exits(78, example.run(repair)).err, refused));
  for (const Words& allowed : {Words{"--trust"}, given}) {
    spoil();
    exits(0, example.run(repair + allowed));
    CHECK((read_text(folder / "o.h5") == output));
  }
  fs::remove(folder / "loudness.so");
  CHECK(has(exits(78, example.run(verify + Words{"--trust"})).err,
            "plugins: loudness.so: there is no such file"));
  exits(0, example.run(verify + given + Words{"--trust"}));
}

TEST_CASE("plug-in: of a job only what the user gives or trusts") {
  for (const Words& allowed : {Words{"--trust"}, kGiven}) {
    CAPTURE(allowed.front());
    const Example example;
    const Words plan{"plan", "p.yaml", "--part", "100KiB", "-o", "job"};
    exits(0, example.run(plan + kGiven));
    const std::string refused = "job/pipeline.yaml:";
    const std::string why = "plugins: loudness.so: this configuration would load the plug-in";
    for (const std::string verb : {"work", "merge"}) {
      CAPTURE(verb);
      const Words words{verb, "job", "-q"};
      const Ended ended = exits(78, example.run(words));
      CHECK(has(ended.err, refused));
      CHECK(has(ended.err, why));
      exits(0, example.run(words + allowed));
    }
    exits(0, example.run({"run", "named.yaml", "-q", "--set", "write.path=one.h5"}));
    CHECK(fs::file_size(example.folder / "o.h5") == fs::file_size(example.folder / "one.h5"));
  }
}

}  // namespace melflow::test::plugin_test
