// Several corpora in one output: the rows are those of each corpus by itself, one after the other,
// and the output describes the files of all.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "stages/output/formats/feature_file.h"
#include "tests/jobs/shared.h"
#include "tests/support/h5_reader.h"
#include "tests/support/hold.h"
#include "tests/support/printing.h"

namespace melflow::test::several_sources_test {
namespace {

using Texts = std::vector<std::string>;

struct Sources {
  std::string a = "labels: parent_dir", b = "labels: parent_dir";  // options of the sources
  std::string nodes = {};       // between the sources and the shared nodes
  std::string read = "[a, b]";  // the input of `read`
  std::string segment = "decode", write = "overwrite: true", stage = "hdf5_write";
  std::string bounds = {};  // for every node
  std::string top = {};
};

// With `only`, the pipeline has this source alone, under the name `files`.
std::string pipeline(Sources s, const std::string& only = "") {
  std::string sources;
  if (only != "b")
    sources += fmt::format("  {}: {{stage: file_list, root: \"${{DATA}}/a\", {}}}\n",
                           only.empty() ? "a" : "files", s.a);
  if (only != "a")
    sources += fmt::format("  {}: {{stage: file_list, root: \"${{DATA}}/b\", {}}}\n",
                           only.empty() ? "b" : "files", s.b);
  return fmt::format(R"(version: 1
{}
graph:
{}{}  read: {{stage: disk_read, from: {}{}}}
  decode: {{stage: decode, from: read{}}}
  segment: {{stage: segment, from: {}, length: 256{}}}
  batch: {{stage: batch, from: segment, files: 3}}
  mel: {{stage: mel, from: batch, sample_rate: 8000, n_fft: 256, hop: 256, n_mels: 20, center: false{}}}
  write: {{stage: {}, from: mel, path: "${{OUT}}", {}}}
)",
                     s.top, sources, s.nodes, only.empty() ? s.read : "files", s.bounds, s.bounds,
                     s.segment, s.bounds, s.bounds, s.stage, s.write);
}

// a: en, fr, and a file that is no sound; b: de, en, and a file shorter than a window.
class Corpora {
 public:
  Corpora() {
    unsigned seed = 1;
    for (const char* name : {"a/en/0", "a/en/1", "a/fr/0", "a/fr/1", "b/de/0", "b/de/1", "b/en/0"})
      clip(std::string(name) + ".wav", seed++);
    folder_.write("data/a/en/broken.wav", "no sound");
    write_wav(folder_.file("data/b/de/short.wav"), 100, 8000, 9);
  }
  void clip(const std::string& name, unsigned seed) const {
    write_wav(folder_.file("data/" + name), 3000 + 700 * (seed % 5), 8000, seed);
  }
  [[nodiscard]] LoadOptions options(const std::string& out) const {
    return in_out(folder_ / "data", folder_ / out);
  }
  JobResult run(const std::string& yaml, const std::string& out = "out.h5",
                Update update = Update::none) const {
    return run_job(yaml, options(out), {}, update);
  }
  Output made(const std::string& yaml, const std::string& out = "out.h5",
              Update update = Update::none) const {
    completed(run(yaml, out, update));
    return read_output(folder_ / out);
  }
  [[nodiscard]] const TempFolder& folder() const { return folder_; }

 private:
  TempFolder folder_;
};

Texts paths(const Output& out) {
  Texts all;
  for (const Output::File& f : out.files) all.push_back(f.path);
  return all;
}

std::string label_of(const Output& out, const Output::File& f) {
  return f.label < 0 ? "" : out.labels.at(static_cast<std::size_t>(f.label));
}
std::string split_of(const Output& out, const Output::File& f) {
  return f.split < 0 ? "" : out.splits.at(static_cast<std::size_t>(f.split));
}

// Checks that `all` has each file of `one`, under the name of its source, with its rows and
// everything that is said about it.
void check_holds(const Output& all, const Output& one, const std::string& source) {
  for (const Output::File& f : one.files) {
    const std::string path = source + "/" + f.path;
    CAPTURE(path);
    const Output::File& there = all.file(path);
    CHECK(there.count == f.count);
    CHECK(all.rows_of(path) == one.rows_of(f.path));
    CHECK(label_of(all, there) == label_of(one, f));
    CHECK(split_of(all, there) == split_of(one, f));
    CHECK(there.status == f.status);
    CHECK(there.duration == f.duration);
    CHECK(there.sample_rate == f.sample_rate);
  }
}

}  // namespace

TEST_CASE("several sources: the rows are those of each, one after the other, whatever the bounds") {
  const Corpora c;
  const Output a = c.made(pipeline({}, "a"), "a.h5"), b = c.made(pipeline({}, "b"), "b.h5");
  for (const char* bounds : {"", ", concurrency: 1, queue: 1", ", concurrency: 5, queue: 2"})
    for (const char* top : {"", "workers: 1", "workers: 5\nmemory: {host: 20MiB}"})
      for (const char* files : {"1", "2", "64"}) {
        CAPTURE(std::string(bounds) + " " + top + " " + files);
        Sources s{.bounds = bounds, .top = top};
        s.a += std::string(", files_per_task: ") + files;
        s.b += std::string(", files_per_task: ") + files;
        const Output both = c.made(pipeline(s));
        CHECK(both.mel_bytes == a.mel_bytes + b.mel_bytes);
        CHECK(paths(both) == Texts{"a/en/0.wav", "a/en/1.wav", "a/en/broken.wav", "a/fr/0.wav",
                                   "a/fr/1.wav", "b/de/0.wav", "b/de/1.wav", "b/de/short.wav",
                                   "b/en/0.wav"});
        CHECK(both.labels == Texts{"de", "en", "fr"});
        check_holds(both, a, "a");
        check_holds(both, b, "b");
      }
}

TEST_CASE("several sources: every file has its record, and the output says where each source was") {
  const Corpora c;
  for (const char* out : {"out.h5", "out.npy"}) {
    CAPTURE(std::string(out));
    Sources s;
    if (out == std::string("out.npy")) s.stage = "npy_write";
    const JobResult job = completed(c.run(pipeline(s), out));
    CHECK(job.report.counts.found == 9);
    CHECK(job.report.counts.ok == 7);
    CHECK(job.report.counts.failed == 1);
    CHECK(job.report.counts.skipped == 1);
    CHECK(job.remarks_by_name().count("a/en/broken.wav") == 1);
    CHECK(job.remarks_by_name().count("b/de/short.wav") == 1);
    const FeatureFile file(c.folder() / out);
    CHECK(file.root() == "");
    CHECK(file.sources() ==
          std::vector<CorpusSource>{{"a", c.folder() / "data/a"}, {"b", c.folder() / "data/b"}});
    CHECK(file.is_index_as_written());
  }
}

TEST_CASE("several sources: the features are those of one, where all files go the same way") {
  const Corpora c;
  CHECK(c.made(pipeline({})).texts.at("feature_fingerprint") ==
        c.made(pipeline({}, "a"), "a.h5").texts.at("feature_fingerprint"));
}

TEST_CASE("several sources: each may have nodes of its own before they meet") {
  const Corpora c;
  const std::string trim = "  trim: {stage: trim_silence, from: decode_b, threshold: -15}\n";
  Sources alone{.nodes = "", .segment = "trim"};
  std::string of_b = pipeline({}, "b");
  of_b.replace(of_b.find("from: decode,"), 13, "from: trim,");
  of_b.replace(of_b.find("  segment:"), 0,
               "  trim: {stage: trim_silence, from: decode, threshold: -15}\n");
  const Output a = c.made(pipeline({}, "a"), "a.h5"), b = c.made(of_b, "b.h5");
  const Sources s{.nodes =
                      "  read_b: {stage: disk_read, from: b}\n"
                      "  decode_b: {stage: decode, from: read_b}\n" +
                      trim + "  both: {stage: merge, from: [decode, trim]}\n",
                  .read = "a",
                  .segment = "both"};
  const Output both = c.made(pipeline(s));
  REQUIRE(b.rows() > 0);
  CHECK(both.mel_bytes == a.mel_bytes + b.mel_bytes);
  CHECK(both.texts.at("feature_settings").find(R"("sources": [["a"], ["b"]])") !=
        std::string::npos);
  // Exchanging the sources gives other features.
  Sources other = s;
  other.nodes.replace(other.nodes.find("from: b}"), 8, "from: a}");
  other.read = "b";
  CHECK(c.made(pipeline(other), "other.h5").texts.at("feature_fingerprint") !=
        both.texts.at("feature_fingerprint"));
}

TEST_CASE("several sources: a filter of one sees the paths below the root of that source") {
  const Corpora c;
  const Sources s{.nodes =
                      "  some: {stage: filter, from: b, where: {path: \"de/**\"}}\n"
                      "  both: {stage: merge, from: [a, some]}\n",
                  .read = "both"};
  const JobResult job = completed(c.run(pipeline(s)));
  const Output out = read_output(c.folder() / "out.h5");
  CHECK(out.file("b/de/0.wav").count > 0);
  CHECK(out.file("b/en/0.wav").count == 0);
  CHECK(out.file("a/en/0.wav").count > 0);
  CHECK(job.remarks_by_name().at("b/en/0.wav").find("some") != std::string::npos);
}

TEST_CASE("several sources: an output that only one of them leads to has nothing of the others") {
  const Corpora c;
  std::string yaml = pipeline({});
  yaml +=
      "  read_b: {stage: disk_read, from: b}\n"
      "  decode_b: {stage: decode, from: read_b}\n"
      "  segment_b: {stage: segment, from: decode_b, length: 256}\n"
      "  batch_b: {stage: batch, from: segment_b}\n"
      "  mel_b: {stage: mel, from: batch_b, sample_rate: 8000, n_fft: 256, hop: 256, n_mels: 20, "
      "center: false}\n"
      "  write_b: {stage: hdf5_write, from: mel_b, path: \"${OUT}.b.h5\"}\n";
  const JobResult job = completed(c.run(yaml));
  const Output b = c.made(pipeline({}, "b"), "b.h5"),
               of_b = read_output(c.folder() / "out.h5.b.h5");
  CHECK(of_b.mel_bytes == b.mel_bytes);
  CHECK(of_b.file("a/en/0.wav").count == 0);
  const auto remark = std::find_if(of_b.remarks.begin(), of_b.remarks.end(),
                                   [](const auto& r) { return r.path == "a/en/0.wav"; });
  REQUIRE(remark != of_b.remarks.end());
  CHECK(remark->stage == "sources");
  CHECK(remark->reason == "is of the source 'a'");
  CHECK(job.report.counts.ok == 7);
}

TEST_CASE("several sources: each draws its own splits, and a split has the files of all") {
  const Corpora c;
  for (const char* split : {"train", "test"})
    for (int i = 0; i < 4; ++i)
      c.clip(fmt::format("b/{}/x/{}.wav", split, i), static_cast<unsigned>(20 + i));
  const Sources s{.a = "splits: ratio, split_ratios: {train: 0.5, val: 0.5}",
                  .b = "splits: top_dir, labels: top_dir"};
  const Output a = c.made(pipeline(s, "a"), "a.h5"), b = c.made(pipeline(s, "b"), "b.h5"),
               both = c.made(pipeline(s));
  CHECK(both.splits == Texts{"train", "val", "test", "de", "en"});
  check_holds(both, a, "a");
  check_holds(both, b, "b");
  Texts expected;
  for (const std::string& split : both.splits)
    for (const auto& [name, one] : {std::pair("a/", &a), std::pair("b/", &b)})
      for (const Output::File& f : one->files)
        if (split_of(*one, f) == split) expected.push_back(name + f.path);
  CHECK(paths(both) == expected);
  const H5File h5(c.folder() / "out.h5");
  const H5File h5_a(c.folder() / "a.h5"), h5_b(c.folder() / "b.h5");
  CHECK(h5.raw("train/mel") == h5_a.raw("train/mel") + h5_b.raw("train/mel"));
}

TEST_CASE("several sources: columns and targets are those of all") {
  const Corpora c;
  c.folder().write("data/a/list.csv", "path,speaker,level\nen/0.wav,ann,0.5\nfr/0.wav,bo,1.5\n");
  c.folder().write("data/b/list.csv", "path,room,tags\nde/0.wav,hall,x|y\n");
  const Sources s{.a = "manifest: \"${DATA}/a/list.csv\", columns: [speaker], targets: [level]",
                  .b = "manifest: \"${DATA}/b/list.csv\", columns: [room], labels: manifest, "
                       "columns_are: {label: tags}, label_separator: \"|\""};
  completed(c.run(pipeline(s)));
  const FeatureFile out(c.folder() / "out.h5");
  CHECK(out.columns() == Texts{"room", "speaker"});  // HDF5 sorts them
  CHECK(out.targets() == Texts{"level"});
  REQUIRE(out.files().size() == 3);
  CHECK(out.files()[0].texts == Texts{"", "ann"});
  CHECK(out.files()[2].texts == Texts{"hall", ""});
  CHECK(out.files()[1].targets == std::vector<float>{1.5F});
  CHECK(std::isnan(out.files()[2].targets.at(0)));
  CHECK(out.labels() == Texts{"x", "y"});
  CHECK(out.files()[0].labels.empty());
  CHECK(out.files()[2].labels == std::vector<std::int32_t>{0, 1});
}

TEST_CASE("several sources: constants are those of each, also the name of its node") {
  const Corpora c;
  const std::string named = "constants: {corpus: \"the {source}\", label: \"{source}\", split: ";
  completed(c.run(pipeline({.a = named + "train}", .b = named + "test}"})));
  const FeatureFile out(c.folder() / "out.h5");
  CHECK(out.columns() == Texts{"corpus"});
  CHECK(out.labels() == Texts{"a", "b"});
  REQUIRE(out.files().size() == 9);
  CHECK(out.files()[0].texts == Texts{"the a"});
  CHECK(out.files()[8].texts == Texts{"the b"});
  CHECK(out.files()[8].label == 1);
  CHECK(read_output(c.folder() / "out.h5").splits == Texts{"train", "test"});
}

TEST_CASE("several sources: labels or splits that only some of them have are remarked on") {
  const Corpora c;
  struct Row {
    std::string a, b;
    Texts expected;
  };
  const std::string ratio = "splits: ratio, split_ratios: {train: 50, test: 50}";
  const std::string
      labels =
          "a has labels, b has none: the files of that are without a label; set labels of b, too",
      splits = "b has splits, a has none: the files of that are in no split; set splits of a, too";
  const Row rows[] = {{"labels: parent_dir", "labels: none", {labels}},
                      {"labels: none", ratio, {splits}},
                      {"labels: parent_dir", ratio, {labels, splits}},
                      {"labels: parent_dir", "labels: top_dir", {}},
                      {ratio, ratio, {}},
                      {"labels: none", "labels: none", {}}};
  for (const Row& row : rows) {
    CAPTURE(row.a + " / " + row.b);
    const JobResult job = completed(c.run(pipeline({.a = row.a, .b = row.b})));
    Texts told;
    for (const std::string& warning : job.report.warnings)
      if (warning.find(" has none: ") != std::string::npos) told.push_back(warning);
    CHECK(told == row.expected);
    CHECK(FeatureFile(c.folder() / "out.h5").warnings() == job.report.warnings);
  }
}

TEST_CASE("several sources: a file that is in two of them is remarked on, and is there twice") {
  const Corpora c;
  std::string yaml = pipeline({.a = "splits: ratio, split_ratios: {train: 1}",
                               .b = "splits: ratio, split_ratios: {val: 1}"});
  yaml.replace(yaml.find("${DATA}/b"), 9, "${DATA}/a/en");
  const JobResult job = completed(c.run(yaml));
  const Output out = read_output(c.folder() / "out.h5");
  CHECK(out.rows_of("a/en/1.wav") == out.rows_of("b/1.wav"));
  CHECK(std::count(
            job.report.warnings.begin(), job.report.warnings.end(),
            "3 of 8 files are in more than one source, such as b/0.wav, which is a/en/0.wav; 3 in "
            "another split: a/en/0.wav is in train, b/0.wav in val. Each gives rows of its "
            "own") == 1);
  // Equal names alone give no warning.
  c.clip("b/en/1.wav", 77);
  for (const std::string& warning : c.run(pipeline({})).report.warnings)
    CHECK(warning.find("more than one source") == std::string::npos);
}

TEST_CASE("several sources: an update takes new files of each, and what is gone goes") {
  for (const Update update : {Update::append, Update::compact}) {
    const Corpora c;
    const Sources s{.a = "splits: ratio, split_ratios: {train: 0.5, val: 0.5}",
                    .b = "splits: ratio, split_ratios: {val: 0.5, test: 0.5}",
                    .write = "max_dropped: 100%"};
    const Output before = c.made(pipeline(s));
    c.clip("a/fr/2.wav", 31);
    c.clip("b/de/2.wav", 32);
    std::filesystem::remove(c.folder() / "data/b/de/1.wav");
    CHECK(completed(c.run(pipeline(s), "out.h5", update)).report.kept >= 6);
    const Output after = read_output(c.folder() / "out.h5");
    for (const Output::File& f : before.files) {
      if (f.path == "b/de/1.wav") continue;
      CAPTURE(f.path);
      CHECK(split_of(after, after.file(f.path)) == split_of(before, f));
      CHECK(after.rows_of(f.path) == before.rows_of(f.path));
    }
    CHECK(after.file("a/fr/2.wav").count > 0);
    CHECK(after.file("b/de/2.wav").count > 0);
    CHECK(paths(after).size() == 10);
  }
}

TEST_CASE("several sources: an update of an output with a file a split knows the splits of all") {
  const Corpora c;
  const Sources s{.a = "splits: ratio, split_ratios: {train: 0.5, val: 0.5}",
                  .b = "splits: ratio, split_ratios: {val: 0.5, test: 0.5}",
                  .write = "split_files: true"};
  completed(c.run(pipeline(s)));
  std::map<std::string, std::string> splits;
  for (const char* split : {"train", "val", "test"})
    for (const Output::File& f :
         read_output(c.folder() / (std::string("out.") + split + ".h5")).files)
      splits[f.path] = split;
  c.clip("a/fr/2.wav", 31);
  c.clip("b/de/2.wav", 32);
  CHECK(completed(c.run(pipeline(s), "out.h5", Update::append)).report.kept == 7);
  for (const char* split : {"train", "val", "test"})
    for (const Output::File& f :
         read_output(c.folder() / (std::string("out.") + split + ".h5")).files)
      if (splits.count(f.path) == 1) CHECK(splits.at(f.path) == split);
}

TEST_CASE("several sources: a run that was stopped goes on, and makes what it would have made") {
  const Corpora c;
  for (unsigned i = 0; i < 12; ++i)
    for (const char* corpus : {"a", "b"})  // long enough that rows of some are on disk
      write_wav(c.folder().file(fmt::format("data/{}/aa/{:02}.wav", corpus, i)), 200'000, 8000,
                i + (corpus[0] == 'a' ? 0U : 40U));
  // One at a time, and by one worker: rows of files that come out of order are with others in a
  // batch that is not full when the run is stopped.
  const std::string yaml =
      pipeline({.nodes = "  files: {stage: merge, from: [a, b], concurrency: 1}\n",
                .read = "files",
                .write = "sync: false"});
  LoadOptions options = c.options("out.h5");
  options.workers = 1;
  const JobResult stopped = run_and_stop(yaml, options, {.let_in = 24, .closed = 19});
  REQUIRE_MESSAGE(stopped.report.ending == Ending::stopped, stopped.text());
  const JobResult job = completed(run_job(with_held_files(yaml), c.options("out.h5")));
  std::size_t resumed = 0;
  for (const auto& [name, value] : job.stage("write").summary)
    if (name == "resumed_files") resumed = std::stoul(value.text());
  CHECK(resumed > 17);  // including some of the second source
  CHECK(read_output(c.folder() / "out.h5").difference(c.made(with_held_files(yaml), "whole.h5")) ==
        "");
}

TEST_CASE("several sources: a run does not go on with what was of other sources") {
  const Corpora c;
  for (unsigned i = 0; i < 24; ++i)
    write_wav(c.folder().file(fmt::format("data/a/aa/{:02}.wav", i)), 200'000, 8000, i);
  std::string yaml = pipeline({.nodes = "  files: {stage: merge, from: [a, b], concurrency: 1}\n",
                               .read = "files",
                               .write = "sync: false"});
  const JobResult stopped = run_and_stop(yaml, c.options("out.h5"), {.let_in = 24, .closed = 10});
  REQUIRE_MESSAGE(stopped.report.ending == Ending::stopped, stopped.text());
  // Reads the same files from a source with another name.
  yaml.replace(yaml.find("  a:"), 4, "  c:");
  yaml.replace(yaml.find("[a, b]"), 6, "[c, b]");
  CHECK(c.made(with_held_files(yaml)).difference(c.made(with_held_files(yaml), "whole.h5")) == "");
}

TEST_CASE("several sources: utterances of both") {
  const Corpora c;
  c.folder().write("data/a/list.csv", "path,start,end\nen/0.wav,0.05,0.2\nen/0.wav,0.1,0.3\n");
  c.folder().write("data/b/list.csv", "path,start,end\nde/0.wav,0.05,0.2\nen/0.wav,0,0.25\n");
  const Sources s{.a = "manifest: \"${DATA}/a/list.csv\", utterances: {}",
                  .b = "manifest: \"${DATA}/b/list.csv\", utterances: {}"};
  const Output a = c.made(pipeline(s, "a"), "a.h5"), b = c.made(pipeline(s, "b"), "b.h5"),
               both = c.made(pipeline(s));
  CHECK(both.mel_bytes == a.mel_bytes + b.mel_bytes);
  check_holds(both, a, "a");
  check_holds(both, b, "b");
  CHECK(both.files.at(1).path == "a/en/0.wav#t=0.1,0.3");
}

TEST_CASE("several sources: audio from a store, and hashes of contents, are of all") {
  const Corpora c;
  // Replaces a file by one with the same path, size and time, but other samples.
  c.clip("b/en/1.wav", 7);
  std::filesystem::last_write_time(
      c.folder() / "data/b/en/1.wav",
      std::filesystem::last_write_time(c.folder() / "data/a/en/1.wav"));
  const Output streamed = c.made(pipeline({}));
  REQUIRE(streamed.rows_of("a/en/1.wav") != streamed.rows_of("b/en/1.wav"));
  for (const char* option : {"feed: preload", "feed: cache, cache_path: \"${OUT}.cache\"",
                             "feed: cache, cache_path: \"${OUT}.cache\"", "update_by: content"}) {
    CAPTURE(std::string(option));
    const Sources s{.a = std::string("labels: parent_dir, ") + option,
                    .b = std::string("labels: parent_dir, ") + option};
    const Output out = c.made(pipeline(s));
    CHECK(out.mel_bytes == streamed.mel_bytes);
    CHECK(out.files == streamed.files);
  }
}

TEST_CASE("several sources: written recordings have a folder for each") {
  const Corpora c;
  const std::string yaml = R"(version: 1
graph:
  a: {stage: file_list, root: "${DATA}/a"}
  b: {stage: file_list, root: "${DATA}/b"}
  read: {stage: disk_read, from: [a, b]}
  decode: {stage: decode, from: read}
  write: {stage: audio_write, from: decode, path: "${OUT}"}
)";
  completed(c.run(yaml, "sounds"));
  CHECK(std::filesystem::exists(c.folder() / "sounds/a/en/0.wav"));
  CHECK(std::filesystem::exists(c.folder() / "sounds/b/en/0.wav"));
}

}  // namespace melflow::test::several_sources_test
