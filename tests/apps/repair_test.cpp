// melflow repair: changed rows are computed again, and nothing else is.
#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "pipeline/base/number_type.h"
#include "stages/output/formats/feature_file.h"
#include "tests/apps/pipelines.h"
#include "tests/apps/process.h"
#include "tests/support/audio_files.h"
#include "tests/support/printing.h"

namespace melflow::test::repair_test {

namespace fs = std::filesystem;

namespace {

constexpr const char* kMel = "sample_rate: 8000, n_mels: 80, n_fft: 256, hop: 80";

void run_pipeline(const TempFolder& folder, const std::string& files, const std::string& sink) {
  test::write_text(folder / "p.yaml",
                   test::nodes_to_mel(files, kMel) + "  write: {from: mel, " + sink + "}\n");
  exits(0, melflow_in(folder, {"run", "p.yaml", "-q"}));
}

// Recordings 0.wav to 5.wav, the last two in another split.
void make_output(const TempFolder& folder, const std::string& sink) {
  for (unsigned i = 0; i < 6; ++i) {
    const std::string split = i < 4 ? "train" : "val";
    fs::create_directories(folder / ("data/" + split));
    test::write_wav(folder / fmt::format("data/{}/{}.wav", split, i), 4000 + 500 * i, 8000, i);
  }
  run_pipeline(folder, "root: data, splits: top_dir", sink);
}

// Flips a bit of a byte.
void spoil(const std::string& path, std::uint64_t where) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  const auto at = static_cast<std::streamoff>(where);
  file.seekg(at);
  const int byte = file.get();
  file.seekp(at);
  file.put(static_cast<char>(byte ^ 16));
}

// Returns all files of the output, by name.
std::map<std::string, std::string> outputs(const TempFolder& folder) {
  std::map<std::string, std::string> out;
  for (const auto& entry : fs::directory_iterator(folder.path()))
    if (const std::string name = entry.path().filename(); name.starts_with("o."))
      out[name] = test::read_text(entry.path());
  return out;
}

// Flips a bit in the middle of the rows.
void spoil(const std::string& path) {
  std::uint64_t at = 64 * 1024 + 20000;  // if rows are in chunks
  {
    const FeatureFile file(path);
    if (file.rows_at())
      at = *file.rows_at() + file.rows() / 2 * file.bands() * size_of(*number_type(file.dtype()));
  }
  spoil(path, at);
}
struct Row {
  std::string sink, name;
  std::vector<std::string> damaged;  // files of the output
};

}  // namespace

TEST_CASE("repair: rows that are another are recomputed, to the same bytes as ever") {
  for (const Row& row : {
           Row{"stage: hdf5_write, path: o.h5", "o.h5", {"o.h5"}},
           {"stage: hdf5_write, path: o.h5, dtype: float16, statistics: train", "o.h5", {"o.h5"}},
           {"stage: hdf5_write, path: o.h5, compression: deflate, chunk: 4KiB", "o.h5", {"o.h5"}},
           {"stage: npy_write, path: o.npy, split_files: false", "o.npy", {"o.npy"}},
           {"stage: npy_write, path: o.npy", "o.val.npy", {"o.train.npy", "o.val.npy"}},
           {"stage: kaldi_write, path: o.ark", "o.ark", {"o.ark"}},
           {"stage: hdf5_write, path: o.h5, statistics: train, normalize: true", "o.h5", {"o.h5"}},
           {"stage: npy_write, path: o.npy, dtype: float16, statistics: all, normalize: true",
            "o.train.npy",
            {"o.train.npy", "o.val.npy"}},
           {"stage: hdf5_write, path: o.h5, split_files: true",
            "o.train.h5",
            {"o.train.h5", "o.val.h5"}},
       }) {
    CAPTURE(row.sink);
    const TempFolder folder;
    make_output(folder, row.sink);
    const auto whole = outputs(folder);
    CHECK(has(exits(0, melflow_in(folder, {"repair", row.name})).out, "nothing is changed"));
    CHECK(outputs(folder) == whole);
    for (const std::string& name : row.damaged) {
      spoil(folder / name);
      CHECK(melflow_in(folder, {"verify", name}).code == 1);
    }
    const auto spoiled = outputs(folder);
    const Ended planned = exits(0, melflow_in(folder, {"repair", row.name, "--dry-run"}));
    CHECK(has(planned.out, fmt::format("{} to compute (1 damaged in ", row.damaged.size())));
    CHECK(outputs(folder) == spoiled);
    const Ended repaired = exits(0, melflow_in(folder, {"repair", row.name}));
    for (const std::string& name : row.damaged) CHECK(has(repaired.out, "  " + name + ": "));
    CHECK((outputs(folder) == whole));
  }
}

TEST_CASE("repair: a damaged output of a pipeline with several is refused, a right one kept") {
  const TempFolder folder;
  make_output(folder,
              "stage: hdf5_write, path: a.h5}\n  b: {from: mel, stage: npy_write, path: b.npy, "
              "split_files: false");
  const std::string before = test::read_text(folder / "a.h5");
  for (const char* name : {"a.h5", "b.npy"})
    CHECK(exits(0, melflow_in(folder, {"repair", name})).out ==
          std::string(name) + ": the rows are what was written; nothing is changed\n");
  CHECK(test::read_text(folder / "a.h5") == before);
  spoil(folder / "a.h5");
  CHECK(has(exits(0, melflow_in(folder, {"repair", "b.npy"})).out, "nothing is changed"));
  const Ended e = melflow_in(folder, {"repair", "a.h5"});
  CHECK(e.code == 1);
  CHECK(has(e.err, "is of a pipeline with more than one output (b is another)"));
}

TEST_CASE("repair: verify advises it where it is possible, and else what is") {
  struct Row {
    std::string sinks, damaged, advice;
  };
  for (const Row& row : {
           Row{"stage: npy_write, path: o.npy, split_files: false", "o.npy",
               "`melflow repair o.npy` makes them again\n"},
           {"stage: hdf5_write, path: o.h5}\n  b: {from: mel, stage: npy_write, path: o.npy, "
            "split_files: false",
            "o.npy", "remove o.npy, and `melflow update` of its pipeline makes it again\n"},
           {"stage: npy_write, path: o.npy, split_files: false, overwrite: true}\n  b: {from: "
            "decode, stage: audio_write, path: sound, overwrite: true",
            "o.npy", "run its pipeline again, with overwrite: true\n"},
           {"stage: kaldi_write, path: o.ark, split_files: false, compression: 2, overwrite: true",
            "o.ark", "run its pipeline again, with overwrite: true\n"},
       }) {
    CAPTURE(row.sinks);
    const TempFolder folder;
    make_output(folder, row.sinks);
    spoil(folder / row.damaged, fs::file_size(folder / row.damaged) / 2);
    const Ended found = exits(1, melflow_in(folder, {"verify", row.damaged}));
    CHECK(has(found.out, "\nIs the disk sound? If so, " + row.advice));
    // What is advised helps, and only where it is repair does that.
    const bool is_repair = has(row.advice, "repair");
    CHECK(melflow_in(folder, {"repair", row.damaged}).code == (is_repair ? 0 : 1));
    if (has(row.advice, "remove")) {
      fs::remove(folder / row.damaged);
      exits(0, melflow_in(folder, {"update", "p.yaml", "-q"}));
    } else if (!is_repair) {
      CHECK(melflow_in(folder, {"update", "p.yaml", "-q"}).code == 1);
      exits(0, melflow_in(folder, {"run", "p.yaml", "-q"}));
    }
    exits(0, melflow_in(folder, {"verify", row.damaged}));
  }
}

TEST_CASE("repair: rows of recordings that are gone are kept where they are right") {
  for (const std::string& sink :
       {std::string("stage: npy_write, path: o.npy, split_files: false"),
        std::string("stage: npy_write, path: o.npy, split_files: false, max_dropped: 0")}) {
    CAPTURE(sink);
    const TempFolder folder;
    make_output(folder, sink);
    const auto whole = outputs(folder);
    spoil(folder / "o.npy");
    const auto spoiled = outputs(folder);
    // If all recordings are missing, the folder is wrong, or a disk is not mounted.
    fs::rename(folder / "data", folder / "elsewhere");
    const Ended refused = exits(1, melflow_in(folder, {"repair", "o.npy"}));
    CHECK(has(refused.err, "its recordings were in the folder 'data', which does not exist here"));
    fs::create_directory(folder / "data");
    CHECK(has(melflow_in(folder, {"repair", "o.npy"}).err, "'data', which is empty here"));
    CHECK((outputs(folder) == spoiled));
    test::write_text(folder / "data/another.wav", "");
    const Ended repaired = exits(3, melflow_in(folder, {"repair", "o.npy"}));
    CHECK(has(repaired.out, "are gone; `melflow update` tries again:\n  o.npy: "));
    CHECK(has(repaired.out, "read: does not exist"));
    CHECK(has(repaired.out, "kept: the rows of 5 files"));
    CHECK(melflow_in(folder, {"verify", "o.npy"}).out ==
          "o.npy: the rows of 5 files are what was written\n");
    fs::remove_all(folder / "data");
    fs::rename(folder / "elsewhere", folder / "data");
    exits(0, melflow_in(folder, {"update", "p.yaml", "-q", "--compact"}));
    CHECK((outputs(folder) == whole));
  }
}

TEST_CASE("repair: utterances, whose recordings are read once more") {
  const TempFolder folder;
  fs::create_directories(folder / "data");
  for (unsigned i = 0; i < 3; ++i)
    test::write_wav(folder / fmt::format("data/{}.wav", i), 16000, 8000, i);
  for (const std::string& unit : {std::string("seconds"), std::string("samples")}) {
    CAPTURE(unit);
    const int second = unit == "seconds" ? 1 : 8000;
    std::string list = "path,start,end\n";
    for (int i = 0; i < 3; ++i)
      list += fmt::format("{0}.wav,0,{1}\n{0}.wav,{1},{2}\n", i, second, 2 * second);
    test::write_text(folder / "list.csv", list);
    run_pipeline(folder, "root: data, manifest: list.csv, utterances: {unit: " + unit + "}",
                 "stage: npy_write, path: o.npy, overwrite: true");
    const auto whole = outputs(folder);
    spoil(folder / "o.npy");
    const Ended repaired = exits(0, melflow_in(folder, {"repair", "o.npy"}));
    CHECK(has(repaired.out, unit == "seconds" ? "1.wav#t=" : "1.wav#samples="));
    CHECK((outputs(folder) == whole));
  }
}

TEST_CASE("repair: signals that are made up are made once more by a run") {
  const TempFolder folder;
  test::write_text(folder / "s.yaml",
                   "version: 1\ngraph:\n  files: {stage: synthetic, count: 4}\n"
                   "  segment: {stage: segment, from: files}\n"
                   "  batch: {stage: batch, from: segment}\n"
                   "  mel: {stage: mel, from: batch}\n"
                   "  write: {stage: npy_write, from: mel, path: o.npy}\n");
  REQUIRE(melflow_in(folder, {"run", "s.yaml", "-q"}).code == 0);
  spoil(folder / "o.npy");
  const auto before = outputs(folder);
  CHECK(has(exits(1, melflow_in(folder, {"repair", "o.npy"})).err, "use melflow run instead"));
  CHECK((outputs(folder) == before));
}

TEST_CASE("repair: whichever byte is another, the output is right again or refused as it is") {
  struct Kind {
    std::string sink, named, damaged;
  };
  for (const Kind& kind :
       {Kind{"stage: npy_write, path: o.npy", "o.train.npy", "o.train.npy"},
        {"stage: npy_write, path: o.npy", "o.val.npy", "o.train.index.npy"},
        {"stage: npy_write, path: o.npy", "o.train.npy", "o.train.index.json"},
        {"stage: kaldi_write, path: o.ark", "o.ark", "o.ark"},
        {"stage: kaldi_write, path: o.ark", "o.ark", "o.scp"},
        {"stage: hdf5_write, path: o.h5", "o.h5", "o.h5"},
        {"stage: hdf5_write, path: o.h5, compression: deflate, chunk: 4KiB", "o.h5", "o.h5"}}) {
    const TempFolder folder;
    make_output(folder, kind.sink);
    const auto whole = outputs(folder);
    const std::string& bytes = whole.at(kind.damaged);
    constexpr std::size_t kPlaces = 30;
    for (std::size_t k = 0; k < kPlaces; ++k) {
      const std::size_t at = (2 * k + 1) * bytes.size() / (2 * kPlaces);
      CAPTURE(kind.damaged);
      CAPTURE(at);
      spoil(folder / kind.damaged, at);
      const auto damaged = outputs(folder);
      const Ended ended = melflow_in(folder, {"repair", kind.named});
      const auto now = outputs(folder);
      if (ended.code == 1) {
        CHECK((now == damaged));
        CHECK(has(ended.err, "melflow: "));
      } else if (has(ended.out, "nothing is changed")) {  // bytes without a meaning
        CHECK((now == damaged));
      } else {
        CHECK(ended.code == 0);
        CHECK((now == whole));
      }
      for (const auto& [name, text] : whole) test::write_text(folder / name, text);
    }
  }
}

TEST_CASE("repair: an index that is another is told by every verb that goes by it") {
  const TempFolder folder;
  make_output(folder, "stage: npy_write, path: o.npy, split_files: false");
  const std::string bytes = test::read_text(folder / "o.index.npy");
  spoil(folder / "o.index.npy", bytes.find("train/1.wav"));
  const auto before = outputs(folder);
  const std::string damaged = "its index is not what was written";
  for (const char* verb : {"verify", "repair", "inspect"}) {
    CAPTURE(verb);
    const Ended ended = melflow_in(folder, {verb, "o.npy"});
    CHECK((ended.code == 0) == (std::string(verb) == "inspect"));
    CHECK(has(ended.out + ended.err, damaged));
  }
  CHECK(has(exits(1, melflow_in(folder, {"update", "p.yaml"})).err, damaged));
  CHECK((outputs(folder) == before));
}

TEST_CASE("repair: files of two runs are told apart") {
  for (const std::string& sink : {std::string("stage: npy_write, path: o.npy, overwrite: true"),
                                  std::string("stage: hdf5_write, path: o.h5, split_files: true, "
                                              "overwrite: true")}) {
    CAPTURE(sink);
    const std::string ending = has(sink, "npy") ? ".npy" : ".h5";
    const TempFolder folder;
    make_output(folder, sink);
    const auto first = outputs(folder);
    REQUIRE(melflow_in(folder, {"run", "p.yaml", "-q"}).code == 0);
    CHECK((outputs(folder) == first));  // the files belong together again
    test::write_wav(folder / "data/val/5.wav", 5000, 8000, 9);
    REQUIRE(melflow_in(folder, {"run", "p.yaml", "-q"}).code == 0);
    CHECK(melflow_in(folder, {"verify", "o.train" + ending}).code == 0);
    for (const auto& [name, text] : first)
      if (name.starts_with("o.val")) test::write_text(folder / name, text);
    const std::string says =
        "o.val" + ending + ": this file is not of the same run as o.train" + ending;
    CHECK(has(exits(1, melflow_in(folder, {"verify", "o.train" + ending})).out, says));
    CHECK(has(melflow_in(folder, {"inspect", "o.train" + ending}).out, says));
    CHECK(has(melflow_in(folder, {"inspect", "o.train" + ending, "--json"}).out, says));
    CHECK(has(exits(1, melflow_in(folder, {"repair", "o.train" + ending})).err, says));
    REQUIRE(melflow_in(folder, {"update", "p.yaml", "-q"}).code == 0);
    CHECK(melflow_in(folder, {"verify", "o.train" + ending}).code == 0);
    if (ending == ".h5") continue;
    // Rows of one run and an index of another, with equally many rows.
    const std::string rows = test::read_text(folder / "o.val.npy");
    test::write_wav(folder / "data/val/5.wav", 5000, 8000, 10);
    REQUIRE(melflow_in(folder, {"run", "p.yaml", "-q"}).code == 0);
    test::write_text(folder / "o.val.npy", rows);
    CHECK(has(melflow_in(folder, {"inspect", "o.val.npy"}).out,
              "are not those that its index describes"));
  }
}

TEST_CASE("repair: what cannot be repaired is left as it is") {
  const TempFolder folder;
  make_output(folder,
              "stage: npy_write, path: o.npy, split_files: false, statistics: all, "
              "normalize: true");
  spoil(folder / "o.npy");
  const auto before = outputs(folder);
  const Ended verified = melflow_in(folder, {"verify", "o.npy"});
  std::string spoiled;  // a recording's file
  for (const char* name : {"train/0.wav", "train/1.wav", "train/2.wav", "train/3.wav", "val/4.wav"})
    if (has(verified.out, name)) spoiled = name;
  REQUIRE_MESSAGE(!spoiled.empty(), verified.out);
  test::write_wav(folder / ("data/" + spoiled), 7000, 8000, 77);
  const Ended normalised = exits(1, melflow_in(folder, {"repair", "o.npy"}));
  CHECK_MESSAGE(has(normalised.err,
                    "its rows are normalised by statistics of the recordings as "
                    "they were, and what " +
                        spoiled + " gives now is not what was written"),
                normalised.err);
  CHECK((outputs(folder) == before));
  // A recording that no longer gives rows loses only its own.
  test::write_text(folder / ("data/" + spoiled), "no sound");
  exits(3, melflow_in(folder, {"repair", "o.npy"}));
  CHECK(melflow_in(folder, {"verify", "o.npy"}).code == 0);
  const auto mean = [](const std::map<std::string, std::string>& files) {
    const std::string& text = files.at("o.index.json");
    const std::size_t at = text.find("\"statistics\"");
    return text.substr(at, text.find('}', at) - at);
  };
  CHECK(mean(outputs(folder)) == mean(before));
  test::write_wav(folder / ("data/" + spoiled), 7000, 8000, 77);
  const Ended none = exits(1, melflow_in(folder, {"repair", "none.h5"}));
  CHECK(has(none.err, "none.h5: there is no such file"));
  test::write_text(folder / "two.yaml", test::nodes_to_mel("root: data", kMel) +
                                            "  a: {stage: hdf5_write, from: mel, path: a.h5}\n"
                                            "  b: {stage: npy_write, from: mel, path: b.npy}\n");
  REQUIRE(melflow_in(folder, {"run", "two.yaml", "-q"}).code == 0);
  spoil(folder / "a.h5");
  CHECK(has(melflow_in(folder, {"repair", "a.h5"}).err, "with more than one output"));
}

}  // namespace melflow::test::repair_test
