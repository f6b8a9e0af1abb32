// A run's messages about its corpus: files that it does not take, texts that paths do not have,
// files that failed.
#include <doctest/doctest.h>
#include <sys/stat.h>

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "tests/apps/pipelines.h"
#include "tests/apps/process.h"
#include "tests/apps/sound.h"

namespace corpus_test {

namespace fs = std::filesystem;
using namespace melflow;
using namespace melflow::test;

namespace {

const std::string kWrite = "  write: {stage: hdf5_write, from: mel, path: out.h5}\n";

// Two recordings of spk1, two of spk2, and files that are no recordings.
void write_corpus(const TempFolder& folder) {
  for (const char* name : {"spk1/a.wav", "spk1/b.wav", "spk2/c.wav", "spk2/d.wav"})
    test::write_clip(folder / (std::string("data/") + name), 16'000, 0.5);
}

void write_pipeline(const TempFolder& folder, const std::string& files, const std::string& mel = "",
                    const std::string& write = kWrite) {
  write_text(folder / "p.yaml",
             nodes_to_mel("root: data" + files, "n_fft: 512, sample_rate: 16kHz" + mel) + write);
}

}  // namespace

TEST_CASE("input files: what has no end is refused at once, wherever a file is named") {
  const Filled<write_corpus> folder;
  const auto pipeline = [&](const std::string& name, const std::string& files) {
    write_text(folder / name, nodes_to_mel(files, "n_fft: 512, sample_rate: 16kHz") + kWrite);
  };
  fs::create_directories(folder / "kaldi");
  write_text(folder / "kaldi/segments", "u1 r1 0 0.2\n");
  pipeline("whole.yaml", "root: data");
  for (const std::string kind : {"a FIFO", "a device"}) {
    const auto odd = [&](const std::string& path) {
      fs::remove(folder / path);
      if (kind == "a device")
        fs::create_symlink("/dev/zero", folder / path);
      else
        REQUIRE(mkfifo((folder / path).c_str(), 0600) == 0);
    };
    for (const char* name : {"odd.yaml", "odd.txt", "odd.csv", "odd.jsonl", "odd.json", "odd.so",
                             "odd.npy", "odd.h5", "odd.tar", "odd.zip", "kaldi/wav.scp"})
      odd(name);
    pipeline("txt.yaml", "root: data, manifest: odd.txt");
    pipeline("csv.yaml", "root: data, manifest: odd.csv");
    pipeline("jsonl.yaml", "root: data, manifest: odd.jsonl");
    pipeline("scp.yaml", "root: data, manifest: kaldi/segments");
    pipeline("zip.yaml", "root: odd.zip");
    pipeline("labels.yaml", "root: data, labels: file, label_file: odd.csv");
    struct Row {
      const char* words;
      const char* file;
    };
    const Row rows[] = {
        {"run odd.yaml", "odd.yaml"},      {"update odd.yaml --dry-run", "odd.yaml"},
        {"validate odd.yaml", "odd.yaml"}, {"test odd.yaml", "odd.yaml"},
        {"graph odd.yaml", "odd.yaml"},    {"compare odd.yaml whole.yaml", "odd.yaml"},
        {"run txt.yaml", "odd.txt"},       {"run csv.yaml", "odd.csv"},
        {"run jsonl.yaml", "odd.jsonl"},   {"run scp.yaml", "kaldi/wav.scp"},
        {"run labels.yaml", "odd.csv"},    {"run whole.yaml --plugin odd.so", "odd.so"},
        {"run zip.yaml", "odd.zip"},       {"inspect odd.h5", "odd.h5"},
        {"verify odd.npy", "odd.npy"},     {"report odd.json odd.json", "odd.json"},
    };
    for (const Row& row : rows) {
      const std::string words = row.words;
      // Without these limits a defect would wait for ever, or take all memory.
      const Ended e =
          run(folder,
              {"/bin/sh", "-c", "ulimit -v 8000000; exec timeout 20 " MELFLOW_PROGRAM " " + words});
      CHECK_MESSAGE(e.code != 124, words << " of " << kind << " waits");
      CHECK_MESSAGE(e.code != 0, words << " of " << kind);
      CHECK_MESSAGE(has(e.err, std::string(row.file) + ": this is " + kind + ", not a file"),
                    words << ": " << e.err);
    }
  }
}

TEST_CASE("input files: a list, a pipeline or a report may come by a pipe of the shell") {
  const Filled<write_corpus> folder;
  write_text(folder / "list.txt", "spk1/a.wav\nspk2/c.wav\n");
  write_pipeline(folder, "");
  const auto shell = [&](const std::string& command) {
    const Ended e = run(folder, {"/usr/bin/timeout", "60", "bash", "-c", command});
    CHECK_MESSAGE(e.code == 0, command << ": " << e.err);
  };
  const std::string program = MELFLOW_PROGRAM;
  // The writer is late: the reader waits for it.
  shell(program + " run p.yaml --set files.manifest=<(sleep 0.2; cat list.txt) --json=a.json");
  CHECK(nlohmann::json::parse(read_text(folder / "a.json"))["files"]["ok"] == 2);
  shell("cat list.txt | " + program +
        " run p.yaml --set files.manifest=/dev/stdin --set write.overwrite=true --json=b.json");
  CHECK(nlohmann::json::parse(read_text(folder / "b.json"))["files"]["ok"] == 2);
  shell(program + " validate <(cat p.yaml)");
  shell("cat p.yaml | " + program + " validate -");
  shell(program + " report <(cat a.json) a.json");  // of one run, which is not slower than itself
}

TEST_CASE("corpus: files that include does not name are counted by their endings") {
  const Filled<write_corpus> folder;
  write_text(folder / "data/spk1/notes.txt", "x");
  write_text(folder / "data/spk2/more.txt", "x");
  write_text(folder / "data/call.gsm", "x");
  write_text(folder / "data/README", "x");
  write_text(folder / "data/._a.wav", "x");
  std::filesystem::create_directory(folder / "data/.git");
  write_text(folder / "data/.git/b.wav", "x");
  write_text(folder / "data/left_out.txt", "x");
  std::filesystem::create_directory_symlink(folder / "data/spk1", folder / "data/spk3");
  write_pipeline(folder, ", exclude: left_out.txt");
  CHECK(
      has(exits(0, melflow_in(folder, {"run", "p.yaml", "--json=run.json"})).out,
          "\nfiles: not named by include: 2 .txt, 1 .gsm, 1 other, 2 hidden (names that begin with "
          "'.'), 1 linked folder (searched with follow_links: true)\n"));
  const auto json = nlohmann::json::parse(read_text(folder / "run.json"));
  CHECK(
      json["stages"][0]["summary"]["not_taken"] ==
      nlohmann::json{{".txt", 2}, {".gsm", 1}, {"other", 1}, {"hidden", 2}, {"linked folder", 1}});
  std::filesystem::remove(folder / "out.h5");
  write_pipeline(folder, ", include: '*.aiff'");
  CHECK(has(exits(1, melflow_in(folder, {"run", "p.yaml"})).err,
            "data: no file matches *.aiff (there are 4 .wav, 3 .txt, 1 .gsm, 1 other, 2 hidden "
            "(names that begin with '.'), 1 linked folder (searched with follow_links: true));"));
}

TEST_CASE("corpus: files that were skipped are told of with --quiet") {
  const Filled<write_corpus> folder;
  test::write_clip(folder / "data/spk1/short.wav", 16'000, 0.1);
  write_pipeline(folder, "");
  const Ended e =
      exits(0, melflow_in(folder, {"run", "p.yaml", "-q", "--set", "segment.min_length=200ms"}));
  CHECK(has(e.err, "1 of 5 files is skipped, such as spk1/short.wav: segment: shorter than "));
}

TEST_CASE("corpus: NIST SPHERE and the other formats of libsndfile are taken by default") {
  const Filled<write_corpus> folder;
  std::filesystem::rename(folder / "data/spk1/a.wav", folder / "data/spk1/a.sph");
  std::filesystem::rename(folder / "data/spk1/b.wav", folder / "data/spk1/B.VOC");
  write_pipeline(folder, "");
  CHECK(has(melflow_in(folder, {"run", "p.yaml"}).out, "4 files: 4 ok"));
}

TEST_CASE(
    "corpus: a rule of columns that finds nothing anywhere is an error, somewhere a warning") {
  const Filled<write_corpus> folder;
  write_pipeline(folder, ", columns: {speaker: 'speaker_([0-9]+)'}");
  CHECK(has(exits(1, melflow_in(folder, {"run", "p.yaml", "-q"})).err,
            "columns: speaker: speaker_([0-9]+) matches none of the 4 paths, such as "
            "spk1/a.wav; correct it, or remove it"));
  CHECK_FALSE(std::filesystem::exists(folder / "out.h5"));
  write_pipeline(folder, ", columns: {speaker: 'spk(1)'}");
  CHECK(has(exits(0, melflow_in(folder, {"run", "p.yaml", "-q"})).err,
            "warning: columns: speaker: spk(1) finds no text in 2 of 4 paths, such as "
            "spk2/c.wav; it is empty there"));
}

TEST_CASE("corpus: validate reads the lists of a corpus, and says what of them a run will") {
  const Filled<write_corpus> folder;
  write_pipeline(folder, ", manifest: segments, utterances: {}, columns: [text]");
  write_text(folder / "segments", "u1 r1 0 0.25\nu2 r2 0 0.25\nu3 r3 0 0.25\n");
  write_text(folder / "wav.scp", "r1 spk1/a.wav\nr2 sox x.sph -t wav - |\nr3 spk2/c.wav\n");
  write_text(folder / "text", "u1 ONE\nu2 TWO\n");
  const std::string bad =
      "segments: 1 of 3 lines cannot be used and fails alone; the first: wav.scp:2: r2 is a "
      "command (sox x.sph -t wav - |); ";
  const std::string missing =
      "text: 1 of 3 utterances have no line there (u3); text is empty for them\n";
  const Ended checked = exits(0, melflow_in(folder, {"validate", "p.yaml"}));
  CHECK(has(checked.out, bad));
  CHECK(has(checked.out, missing));
  const auto json = nlohmann::json::parse(melflow_in(folder, {"validate", "p.yaml", "--json"}).out);
  CHECK(json["ok"] == true);
  CHECK(has(json["warnings"].dump(), "wav.scp:2: r2 is a command"));
  const Ended ran = exits(3, melflow_in(folder, {"run", "p.yaml", "-q"}));
  CHECK(has(ran.err, bad));
  CHECK(has(ran.err, missing));
  CHECK(has(ran.err, "1 of 3 files failed, 2 are ok"));
  CHECK(has(ran.err, "r2#t=0,0.25: read: failed: wav.scp:2: r2 is a command"));
  // A problem that would end the run is an error.
  write_text(folder / "text", "u1 caf\xE9\n");
  const Ended refused = exits(78, melflow_in(folder, {"validate", "p.yaml"}));
  CHECK(has(refused.err, "text:1: 'caf\\xe9' is not UTF-8"));
  CHECK(has(
      nlohmann::json::parse(melflow_in(folder, {"validate", "p.yaml", "--json"}).out)["problems"]
          .dump(),
      "is not UTF-8"));
  CHECK(melflow_in(folder, {"run", "p.yaml", "-q"}).code == 1);
  // The same for a table beside a folder, which is not searched.
  write_text(folder / "labels.csv", "path,age\nspk1/a.wav,x\n");
  write_pipeline(folder, ", label_file: labels.csv, targets: [age]");
  CHECK(has(melflow_in(folder, {"validate", "p.yaml"}).err, "labels.csv:2: age is 'x'"));
  // A missing list is only a warning, since a pipeline may be checked elsewhere.
  write_pipeline(folder, ", manifest: gone.csv");
  CHECK(melflow_in(folder, {"validate", "p.yaml"}).code == 0);
}

TEST_CASE("corpus: split_group may name an entry of columns") {
  const Filled<write_corpus> folder;
  const std::string ratio = ", splits: ratio, split_ratios: {train: 1, test: 1}";
  write_pipeline(folder, ratio + ", columns: {speaker: 'spk([0-9]+)'}, split_group: speaker");
  CHECK(melflow_in(folder, {"run", "p.yaml", "-q"}).code == 0);
  const Ended e = melflow_in(folder, {"inspect", "out.h5", "--json", "--files"});
  std::map<std::string, std::set<std::string>> splits;
  const auto json = nlohmann::json::parse(e.out);
  for (const auto& file : json["files"]) splits[file["columns"]["speaker"]].insert(file["split"]);
  CHECK(splits.size() == 2);
  for (const auto& speaker : splits) CHECK_MESSAGE(speaker.second.size() == 1, speaker.first);
}

TEST_CASE("corpus: failed files come first in a run and in inspect, and --failed lists only them") {
  const Filled<write_corpus> folder;
  write_text(folder / "data/spk2/bad.wav", "<html>");
  test::write_clip(folder / "data/spk1/short.wav", 16'000, 0.001);
  write_text(folder / "p.yaml",
             "version: 1\ngraph:\n  files: {stage: file_list, root: data}\n"
             "  read: {stage: disk_read, from: files}\n  decode: {stage: decode, from: read}\n"
             "  long: {stage: filter, from: decode, where: {duration: '> 0.1s'}}\n"
             "  segment: {stage: segment, from: long}\n  batch: {stage: batch, from: segment}\n"
             "  mel: {stage: mel, from: batch, n_fft: 512, sample_rate: 16kHz}\n" +
                 kWrite);
  CHECK(has(exits(3, melflow_in(folder, {"run", "p.yaml"})).out,
            "failed, ok with a warning, or skipped:\n"
            "  spk2/bad.wav: decode: failed: is not an audio file (begins with '<html>')\n"
            "  spk1/short.wav: long: skipped: duration is 0.001 s, not > 0.1s\n"));
  const Ended whole = melflow_in(folder, {"inspect", "out.h5"});
  CHECK(whole.out.find("spk2/bad.wav: decode") < whole.out.find("spk1/short.wav: long"));
  const Ended failed = melflow_in(folder, {"inspect", "out.h5", "--failed"});
  CHECK(failed.out == "spk2/bad.wav\tdecode: is not an audio file (begins with '<html>')\n");
  const Ended skipped = melflow_in(folder, {"inspect", "out.h5", "--skipped"});
  CHECK(skipped.out == "spk1/short.wav\tlong: duration is 0.001 s, not > 0.1s\n");
}

TEST_CASE(
    "corpus: files that are ok with a warning are told of with --quiet, and --remarks lists them") {
  const Filled<write_corpus> folder;
  write_text(folder / "data/spk2/bad.wav", "<html>");
  test::write_clip(folder / "whole.wav", 16'000, 1);
  const std::string whole = read_text(folder / "whole.wav");
  for (const char* name : {"spk1/cut", "spk2/cut"})
    write_text(folder / fmt::format("data/{}.wav", name), whole.substr(0, whole.size() * 19 / 20));
  for (const char* write :
       {"hdf5_write, from: mel, path: out.h5", "npy_write, from: mel, path: out.npy"}) {
    CAPTURE(write);
    write_text(folder / "p.yaml",
               test::nodes_to_mel("root: data", "n_fft: 512, sample_rate: 16kHz") +
                   fmt::format("  write: {{stage: {}, overwrite: true}}\n", write));
    const std::string path =
        fmt::format("out.{}", std::string(write).substr(0, 3) == "npy" ? "npy" : "h5");
    const Ended e = melflow_in(folder, {"run", "p.yaml", "-q"});
    CHECK(e.out.empty());
    const std::string remark = "decode: short: the header ";
    CHECK(has(e.err, fmt::format("\n2 of {} files are ok with a warning, such as spk1/cut.wav: {}",
                                 7, remark)));
    CHECK(has(e.err, fmt::format("; `melflow inspect {} --remarks` lists all\n", path)));
    const Ended listed = exits(0, melflow_in(folder, {"inspect", path, "--remarks"}));
    CHECK(std::count(listed.out.begin(), listed.out.end(), '\n') == 3);
    CHECK(listed.out.starts_with("spk1/cut.wav\tok\t" + remark));
    CHECK(has(listed.out,
              "\nspk2/bad.wav\tfailed\tdecode: is not an audio file (begins with '<html>')\n"));
    CHECK(has(listed.out, "\nspk2/cut.wav\tok\t" + remark));
    std::filesystem::remove(folder / path);
  }
}

TEST_CASE("corpus: where every file is skipped, nothing is written and the run has failed") {
  const Filled<write_corpus> folder;
  write_pipeline(folder, "");
  const Ended e = exits(1, melflow_in(folder, {"run", "p.yaml", "--set", "segment.length=60s"}));
  CHECK(has(e.err, "all files were skipped (4) by segment: shorter than one window: "));
  CHECK_FALSE(std::filesystem::exists(folder / "out.h5"));
  // The reason comes before the tables.
  CHECK(e.out.find("spk1/a.wav: segment: skipped") < e.out.find("\nnode "));
}

TEST_CASE("corpus: rows of two outputs are told for each") {
  const Filled<write_corpus> folder;
  write_pipeline(folder, "", "",
                 kWrite + "  second: {stage: npy_write, from: mel, path: out.npy}\n");
  CHECK(has(melflow_in(folder, {"run", "p.yaml"}).out, " rows in each of 2 outputs in "));
}

TEST_CASE("corpus: show names the nearest recording, whatever its folder is") {
  const Filled<write_corpus> folder;
  test::write_clip(folder / "data/spk1/please-hold.wav", 16'000, 0.5);
  write_pipeline(folder, "");
  REQUIRE(melflow_in(folder, {"run", "p.yaml", "-q"}).code == 0);
  CHECK(has(melflow_in(folder, {"show", "out.h5", "--file", "plaese-hold"}).err,
            "there is no file 'plaese-hold' in it. Did you mean 'spk1/please-hold.wav'?"));
}

TEST_CASE("corpus: an update tells of labels that get other numbers") {
  const Filled<write_corpus> folder;
  write_pipeline(folder, ", labels: parent_dir");
  CHECK(melflow_in(folder, {"run", "p.yaml"}).code == 0);
  test::write_clip(folder / "data/spk3/e.wav", 16'000, 0.5);  // becomes the last file
  const Ended last = exits(0, melflow_in(folder, {"update", "p.yaml"}));
  CHECK(last.err.find("other numbers") == std::string::npos);
  test::write_clip(folder / "data/spk0/f.wav", 16'000, 0.5);
  const std::string told =
      "warning: out.h5: 3 of 3 labels have other numbers than before (spk1: 0 before, 1 now); a "
      "program that has stored the numbers, such as a trained model, must use the names\n";
  CHECK(has(melflow_in(folder, {"update", "p.yaml", "--dry-run"}).err, told));
  CHECK(has(exits(0, melflow_in(folder, {"update", "p.yaml"})).err, told));
  CHECK(has(melflow_in(folder, {"inspect", "out.h5"}).out, "spk0"));
}

}  // namespace corpus_test
