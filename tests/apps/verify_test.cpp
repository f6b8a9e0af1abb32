// melflow verify, and the verbs that rely on the hashes it checks; times on a command line.
#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "apps/verbs/argument_checks.h"
#include "stages/output/formats/feature_file.h"
#include "tests/apps/pipelines.h"
#include "tests/apps/process.h"
#include "tests/support/audio_files.h"
#include "tests/support/npy_bytes.h"
#include "tests/support/printing.h"

namespace melflow::test::verify_test {

using Json = nlohmann::ordered_json;
namespace fs = std::filesystem;

namespace {

void make_output(const TempFolder& folder, const std::string& sink) {
  std::filesystem::create_directories(folder / "data");
  for (unsigned i = 0; i < 6; ++i)
    test::write_wav(folder / ("data/" + std::to_string(i) + ".wav"), 4000 + 500 * i, 8000, i);
  test::write_text(folder / "p.yaml",
                   test::nodes_to_mel("root: data", "sample_rate: 8000, n_fft: 256, hop: 100") +
                       "  write: {stage: " + sink + ", from: mel, overwrite: true}\n");
  exits(0, melflow_in(folder, {"run", "p.yaml", "-q"}));
}

// Changes a byte where rows are stored; by default in the middle.
void spoil(const TempFolder& folder, const std::string& name, std::streamoff at = 0) {
  std::fstream file(folder / name, std::ios::in | std::ios::out | std::ios::binary);
  file.seekg(0, std::ios::end);
  const auto size = static_cast<std::streamoff>(file.tellg());
  if (at == 0) at = name.ends_with(".npy") ? (size - 4096) / 2 + 4096 : 64 * 1024 + 40000;
  file.seekg(at);
  const int byte = file.get();
  file.seekp(at);
  file.put(static_cast<char>(byte ^ 1));
}

struct Row {
  std::string sink, name;
};

}  // namespace

TEST_CASE("verify: rows that are another are found, in each format") {
  for (const Row& row : {Row{"hdf5_write, path: o.h5", "o.h5"},
                         {"hdf5_write, path: o.h5, dtype: float16", "o.h5"},
                         {"npy_write, path: o.npy", "o.npy"},
                         {"hdf5_write, path: o.h5, compression: deflate, chunk: 4KiB", "o.h5"}}) {
    CAPTURE(row.sink);
    const std::string& name = row.name;
    const TempFolder folder;
    make_output(folder, row.sink);
    const Ended right = exits(0, melflow_in(folder, {"verify", name}));
    CHECK(right.out == name + ": the rows of 6 files are what was written\n");
    spoil(folder, name);
    const Ended wrong = exits(1, melflow_in(folder, {"verify", name, "--json"}));
    const Json found = Json::parse(wrong.out);
    CHECK(found["right"].get<int>() + static_cast<int>(found["wrong"].size()) == 6);
    CHECK(found["wrong"].size() >= 1);
    const Ended text = melflow_in(folder, {"verify", name});
    CHECK(has(text.out, found["wrong"][0].get<std::string>()));
    CHECK(has(text.out, "Is the disk sound?"));
    if (name != "o.npy") continue;
    spoil(folder, name, 4096 + 100);  // rows of the first file
    CHECK_FALSE(has(melflow_in(folder, {"verify", name}).out, "`melflow verify`"));
  }
}

TEST_CASE("verify: an output without its hashes, or with names that lead elsewhere, is not right") {
  const TempFolder folder;
  make_output(folder, "npy_write, path: o.npy");
  const std::string document = folder / "o.index.json", whole = test::read_text(document);
  const auto with = [&](const std::string& key, const Json& value) {
    Json about = Json::parse(whole);
    if (value.is_null())
      about.erase(key);
    else
      about[key] = value;
    test::write_text(document, about.dump());
  };
  with("index_hash", nullptr);
  const Ended none = exits(1, melflow_in(folder, {"verify", "o.npy"}));
  CHECK(has(none.out,
            "o.npy: its index has no hash (index_hash), so that nothing tells whether it is what "
            "was written"));
  CHECK(has(exits(1, melflow_in(folder, {"repair", "o.npy"})).err,
            "its index is not what was written"));
  for (const char* name : {"/tmp/x", "..", "a/b", "", "two\nlines"}) {
    CAPTURE(std::string(name));
    with("splits", Json::array({name}));
    for (const char* verb : {"verify", "inspect", "repair", "update"})
      CHECK(has(
          exits(1, melflow_in(folder, {verb, verb == std::string("update") ? "p.yaml" : "o.npy"}))
              .err,
          "cannot be the name of a split"));
    with("columns", Json{{name, Json::array({"", "", "", "", "", ""})}});
    CHECK(has(exits(1, melflow_in(folder, {"verify", "o.npy"})).err,
              "cannot be the name of a column"));
  }
}

TEST_CASE("verify: rows are recomputed, and are the same or not") {
  for (const Row& row :
       {Row{"hdf5_write, path: o.h5", "o.h5"},
        {"hdf5_write, path: o.h5, dtype: float16", "o.h5"},
        {"npy_write, path: o.npy", "o.npy"},
        {"hdf5_write, path: o.h5, statistics: all, normalize: true", "o.h5"},
        {"hdf5_write, path: o.h5, statistics: all, normalize: true, dtype: float16", "o.h5"}}) {
    CAPTURE(row.sink);
    const std::string& name = row.name;
    const TempFolder folder;
    make_output(folder, row.sink);
    const Ended all = exits(0, melflow_in(folder, {"verify", name, "--recompute", "100%"}));
    CHECK(has(all.out, "computed from the audio once more, those of 6 files are the same"));
    const Ended some = melflow_in(folder, {"verify", name, "--recompute", "2", "--json"});
    CHECK(Json::parse(some.out)["recomputed"]["same"] == 2);
    // An index whose hashes belong to other rows: stored rows match their hashes, but are not those
    // of the audio. To get there, recordings are changed and their modification times restored.
    const auto time = std::filesystem::last_write_time(folder / "data/3.wav");
    test::write_wav(folder / "data/3.wav", 4000 + 500 * 3, 8000, 77);
    std::filesystem::last_write_time(folder / "data/3.wav", time);
    CHECK(has(exits(1, melflow_in(folder, {"verify", name, "--recompute", "100%"})).out,
              "those of 5 files are the same, bit for bit; those of 1 file are not:\n  3.wav"));
    // A recording known to have changed is no error of the output; an unreadable one is.
    test::write_wav(folder / "data/3.wav", 4000, 8000, 77);
    std::filesystem::remove(folder / "data/4.wav");
    const Ended changed =
        exits(0, melflow_in(folder, {"verify", name, "--recompute", "100%", "--json"}));
    const Json found = Json::parse(changed.out)["recomputed"];
    CHECK(found["same"] == 4);
    CHECK(found["changed"] == Json{"3.wav", "4.wav"});
  }
}

TEST_CASE("verify: recordings that were exchanged are named with each other") {
  for (const char* sink : {"hdf5_write, path: o.h5", "npy_write, path: o.npy"}) {
    CAPTURE(std::string(sink));
    const TempFolder folder;
    make_output(folder, sink);
    const auto path = [&](int i) { return folder / fmt::format("data/{}.wav", i); };
    // Of the same size and time, so that their stamps tell nothing.
    for (int i : {1, 2, 3}) {
      test::write_wav(path(i), 4000, 8000, 20 + static_cast<unsigned>(i));
      fs::last_write_time(path(i), fs::last_write_time(path(0)));
    }
    exits(0, melflow_in(folder, {"run", "p.yaml", "-q"}));
    const std::string name = *sink == 'h' ? "o.h5" : "o.npy";
    fs::rename(path(1), path(9));
    fs::rename(path(2), path(1));
    fs::rename(path(9), path(2));
    const Ended found = exits(1, melflow_in(folder, {"verify", name, "--recompute", "100%"}));
    CHECK(has(found.out,
              "those of 4 files are the same, bit for bit; those of 2 files are those of another "
              "recording:\n  1.wav has the audio that 2.wav had\n  2.wav has the audio that 1.wav "
              "had\nFiles were exchanged"));
    CHECK_FALSE(has(found.out, "gives other values"));
    const auto time = fs::last_write_time(path(3));
    test::write_wav(path(3), 4000, 8000, 77);
    fs::last_write_time(path(3), time);
    const Ended both = exits(1, melflow_in(folder, {"verify", name, "--recompute", "100%"}));
    CHECK(has(both.out, "those of 1 file are not:\n  3.wav\nWhat decodes"));
    CHECK(has(both.out, "\nthose of 2 files are those of another recording:\n  1.wav has"));
    const Json json = Json::parse(
        exits(1, melflow_in(folder, {"verify", name, "--recompute", "100%", "--json"})).out);
    CHECK(json["recomputed"]["exchanged"] == Json{{{"path", "1.wav"}, {"has_audio_of", "2.wav"}},
                                                  {{"path", "2.wav"}, {"has_audio_of", "1.wav"}}});
    CHECK(json["recomputed"]["other"] == Json{"3.wav"});
  }
}

TEST_CASE("verify: utterances are recomputed, all of a recording or some") {
  const TempFolder folder;
  std::filesystem::create_directories(folder / "data");
  for (unsigned i = 0; i < 3; ++i)
    test::write_wav(folder / fmt::format("data/{}.wav", i), 16000, 8000, i);
  for (const auto& [unit, second] : {std::pair("seconds", 1), {"samples", 8000}}) {
    CAPTURE(unit);
    std::string list = "path,start,end,split\n";
    for (int i = 0; i < 3; ++i)
      list += fmt::format("{0}.wav,0,{1},train\n{0}.wav,{1},{2},{3}\n", i, second, 2 * second,
                          i == 1 ? "val" : "train");
    test::write_text(folder / "list.csv", list);
    test::write_text(
        folder / "p.yaml",
        test::nodes_to_mel(
            fmt::format(
                "root: data, manifest: list.csv, splits: manifest, utterances: {{unit: {}}}", unit),
            "sample_rate: 8000, n_mels: 20, n_fft: 256, hop: 80") +
            "  write: {from: mel, stage: hdf5_write, path: o.h5, overwrite: true}\n");
    exits(0, melflow_in(folder, {"run", "p.yaml", "-q"}));
    const Ended all = exits(0, melflow_in(folder, {"verify", "o.h5", "--recompute", "100%"}));
    CHECK(has(all.out, "those of 6 files are the same"));
    for (const char* some : {"1", "2", "3", "4"}) {
      CAPTURE(some);
      const Ended ended =
          exits(0, melflow_in(folder, {"verify", "o.h5", "--recompute", some, "--json"}));
      CHECK(std::to_string(Json::parse(ended.out)["recomputed"]["same"].get<int>()) == some);
    }
    const auto time = std::filesystem::last_write_time(folder / "data/1.wav");
    test::write_wav(folder / "data/1.wav", 16000, 8000, 77);
    std::filesystem::last_write_time(folder / "data/1.wav", time);
    CHECK(has(exits(1, melflow_in(folder, {"verify", "o.h5", "--recompute", "100%"})).out,
              "those of 4 files are the same, bit for bit; those of 2 files are not:"));
    test::write_wav(folder / "data/1.wav", 16000, 8000, 1);
  }
}

TEST_CASE("verify, repair, work: filters and windows of files that are gone") {
  for (const Row& row : {Row{"hdf5_write, path: o.h5", "o.h5"},
                         {"npy_write, path: o.npy", "o.npy"},
                         {"kaldi_write, path: o.ark", "o.ark"}}) {
    CAPTURE(row.sink);
    const TempFolder folder;
    fs::create_directories(folder / "data");
    for (unsigned i = 0; i < 6; ++i)
      test::write_wav(folder / ("data/" + std::to_string(i) + ".wav"), 4000 + 500 * i, 8000, i);
    std::vector<double> bank, window;
    for (int i = 0; i < 3 * 9; ++i) bank.push_back(1.0 / (1 + i % 9));
    for (int i = 0; i < 16; ++i) window.push_back(0.1 * (i + 1));
    write_text(folder / "f.npy", npy("<f8", "3, 9", bytes_of(bank)));
    write_text(folder / "w.npy", npy("<f8", "16,", bytes_of(window)));
    write_text(folder / "p.yaml",
               nodes_to_mel("root: data",
                            "sample_rate: 8000, n_fft: 16, hop: 8, n_mels: 3, filters: f.npy, "
                            "window: values, window_values: w.npy") +
                   "  write: {stage: " + row.sink + ", from: mel}\n");
    exits(0, melflow_in(folder, {"plan", "p.yaml", "--part", "20KiB", "-o", "job"}));
    exits(0, melflow_in(folder, {"run", "p.yaml", "-q"}));
    const std::string whole = test::read_text(folder / row.name);
    write_text(folder / "f.npy", "another file");
    fs::remove(folder / "w.npy");
    CHECK(has(exits(0, melflow_in(folder, {"verify", row.name, "--recompute", "100%"})).out,
              "those of 6 files are the same, bit for bit"));
    exits(0, melflow_in(folder, {"work", "job", "-q"}));
    exits(0, melflow_in(folder, {"merge", "job", "-q", "-o", "merged" + row.name}));
    if (row.name == "o.ark") continue;  // its rows have no single place to spoil
    const auto rows_at = static_cast<std::streamoff>(*FeatureFile(folder / row.name).rows_at());
    spoil(folder, row.name, rows_at + 1000);
    exits(1, melflow_in(folder, {"verify", row.name}));
    exits(0, melflow_in(folder, {"repair", row.name}));
    CHECK(test::read_text(folder / row.name) == whole);
    CHECK(has(
        exits(0, melflow_in(folder, {"verify", "merged" + row.name, "--recompute", "100%"})).out,
        "bit for bit"));
  }
}

TEST_CASE("verify: what cannot be recomputed is said") {
  const TempFolder folder;
  make_output(folder, "hdf5_write, path: o.h5");
  const Ended text = exits(2, melflow_in(folder, {"verify", "o.h5", "--recompute", "much"}));
  CHECK(has(text.err, "--recompute"));
  const TempFolder another;
  CHECK(has(exits(1, melflow_in(another, {"verify", folder / "o.h5", "--recompute", "1"})).err,
            "its recordings were in the folder 'data', which does not exist here; run this in the "
            "folder where the output was made"));
  test::write_text(folder / "two.yaml",
                   test::nodes_to_mel("root: data", "sample_rate: 8000, n_fft: 256, hop: 100") +
                       "  a: {stage: hdf5_write, from: mel, path: a.h5}\n"
                       "  b: {stage: npy_write, from: mel, path: b.npy}\n");
  REQUIRE(melflow_in(folder, {"run", "two.yaml", "-q"}).code == 0);
  const Ended two = exits(1, melflow_in(folder, {"verify", "a.h5", "--recompute", "1"}));
  CHECK(has(two.err, "is of a pipeline with more than one output (b is another)"));
}

TEST_CASE("verify: an update copies no rows that are another") {
  const TempFolder folder;
  make_output(folder, "npy_write, path: o.npy");
  spoil(folder, "o.npy");
  const std::string before = test::read_text(folder / "o.npy");
  test::write_wav(folder / "data/new.wav", 4000, 8000, 9);
  const Ended update = exits(1, melflow_in(folder, {"update", "p.yaml", "-q", "--compact"}));
  CHECK(has(update.err, "are not what was written"));
  CHECK(test::read_text(folder / "o.npy") == before);
}

TEST_CASE("duration: times with units, largest first") {
  CHECK(duration_seconds("11h50m") == 42600);
  CHECK(duration_seconds("90s") == 90);
  CHECK(duration_seconds("1.5h") == 5400);
  CHECK(duration_seconds("1d") == 86400);
  CHECK(duration_seconds("2m250ms") == 120.25);
  CHECK(duration_seconds("90") == 90);
  CHECK(duration_seconds("0.5") == 0.5);
  for (const char* text :
       {"", "0", "-1", "10 s", "h", "5x", "-1s", "1m2h", "1s1s", "0s", "1e3s", "inf"})
    CHECK_MESSAGE(!duration_seconds(text), text);
}

TEST_CASE("run: --stop-after ends a run that can go on") {
  const TempFolder folder;
  test::write_text(folder / "p.yaml",
                   "version: 1\ngraph:\n  files: {stage: synthetic, count: 1000000}\n"
                   "  mel: {stage: mel, from: batch}\n"
                   "  segment: {stage: segment, from: files}\n"
                   "  batch: {stage: batch, from: segment}\n"
                   "  write: {stage: npy_write, from: mel, path: o.npy}\n");
  const Ended e = exits(75, melflow_in(folder, {"run", "p.yaml", "-q", "--stop-after", "300ms"}));
  CHECK(has(e.err, "the same command goes on from there"));
  const Ended wrong = exits(2, melflow_in(folder, {"run", "p.yaml", "--stop-after", "10x"}));
  CHECK(has(wrong.err, "--stop-after"));
}

}  // namespace melflow::test::verify_test
