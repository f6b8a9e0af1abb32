// melflow update with several outputs: each keeps its rows, and a file is read once for all outputs
// that need it.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <filesystem>
#include <map>
#include <string>

#include "stages/output/formats/feature_file.h"
#include "tests/support/audio_files.h"
#include "tests/support/h5_reader.h"
#include "tests/support/job.h"
#include "tests/support/printing.h"
#include "tests/support/small_disk.h"
#include "tests/support/temp_folder.h"

namespace melflow::test::update_outputs_test {
namespace {

// A corpus, and its features `a` (20 bands) and `b` (40), each in its own output.
class Corpus {
 public:
  Corpus() {
    for (int i = 0; i < 8; ++i) clip(fmt::format("{}.wav", 2 * i), i);
    folder_.write("clips/broken.wav", "no sound");
    write_wav(folder_.file("scratch.wav"), 3000, 8000, 9);
    copy_truncated(folder_ / "scratch.wav", folder_ / "clips/cut.wav", 5544);
  }
  void clip(const std::string& name, int seed) const {
    write_wav(folder_.file("clips/" + name), 5000 + 600 * (seed % 5), 8000, unsigned(seed) + 1);
  }
  [[nodiscard]] std::string path(const std::string& name) const { return folder_ / name; }
  [[nodiscard]] const TempFolder& folder() const { return folder_; }

  // Returns the nodes after `from`, the last of which writes.
  static std::string chain(const std::string& name, int bands, const std::string& sink,
                           const std::string& from = "segment") {
    return fmt::format(R"(  batch_{0}: {{stage: batch, from: {3}, files: 3}}
  mel_{0}: {{stage: mel, from: batch_{0}, sample_rate: 8000, n_fft: 256, hop: 80, n_mels: {1}}}
  write_{0}: {{{2}, from: mel_{0}}}
)",
                       name, bands, sink, from);
  }
  static std::string a(const std::string& out, const std::string& more = "") {
    return chain("a", 20, fmt::format("stage: hdf5_write, path: '${{OUT}}/{}_a.h5'{}", out, more));
  }
  static std::string b(const std::string& out) {
    return chain("b", 40, fmt::format("stage: npy_write, path: '${{OUT}}/{}_b.npy'", out));
  }

  JobResult run(const std::string& nodes, Update update = Update::none,
                const std::string& files = "", const std::string& top = "") const {
    return run_job(fmt::format(R"(version: 1
{}
graph:
  files: {{stage: file_list, root: "${{DATA}}"{}}}
  read: {{stage: disk_read, from: files}}
  decode: {{stage: decode, from: read}}
{}{})",
                               top, files,
                               nodes.find("from: segment,") == nodes.npos
                                   ? ""
                                   : "  segment: {stage: segment, from: decode}\n",
                               nodes),
                   in_out(folder_ / "clips", folder_.path()), {}, update);
  }

 private:
  TempFolder folder_;
};

std::int64_t kept_by(const JobResult& job, const std::string& node) {
  for (const auto& [name, value] : job.stage(node).summary)
    if (name == "kept_files") return std::stoll(value.text());
  return 0;
}

// Returns the rows of each file and all that is said about it, whatever the order of rows.
std::map<std::string, std::string> read(const std::string& path) {
  const FeatureFile file(path);
  std::map<std::string, std::string> out;
  for (const FeatureFile::Entry& e : file.files()) {
    std::string& said = out[e.path];
    said = fmt::format("{} {} {} {} {}", to_text(e.status), e.count, e.rows_hash, e.stamp.size,
                       e.stamp.modified);
    if (e.count == 0) continue;
    for (const float v :
         file.read_rows(static_cast<std::uint64_t>(e.offset), static_cast<std::uint64_t>(e.count)))
      said += fmt::format(" {}", v);
  }
  for (const FeatureFile::Remark& r : file.remarks()) out[r.path] += r.stage + ": " + r.reason;
  return out;
}

// Checks that both outputs equal those of a run from the beginning.
void check_as_full(const Corpus& corpus, const std::string& files = "") {
  REQUIRE(
      corpus.run(Corpus::a("full", ", overwrite: true") + Corpus::b("full"), Update::none, files)
          .complete());
  CHECK(read(corpus.path("out_a.h5")) == read(corpus.path("full_a.h5")));
  CHECK(read(corpus.path("out_b.npy")) == read(corpus.path("full_b.npy")));
  for (const char* name : {"full_b.npy", "full_b.index.npy", "full_b.index.json"})
    std::filesystem::remove(corpus.path(name));
}

const std::string kBoth = Corpus::a("out") + Corpus::b("out");

}  // namespace

TEST_CASE("update of two outputs: what is new is read once, for both") {
  for (const std::string files : {"", ", update_by: content", ", feed: preload"}) {
    CAPTURE(files);
    const Corpus corpus;
    REQUIRE(corpus.run(kBoth, Update::none, files).complete());
    const std::string before = read_output(corpus.path("out_a.h5")).mel_bytes;
    corpus.clip("1.wav", 51);
    corpus.clip("99.wav", 52);
    const JobResult job = completed(corpus.run(kBoth, Update::append, files));
    CHECK(job.report.kept == 9);
    CHECK(kept_by(job, "write_a") == 9);
    CHECK(kept_by(job, "write_b") == 9);
    CHECK(job.stage("batch_a").items_in == 2);
    if (files != ", feed: preload")
      CHECK(job.stage("decode").items_in == 3);  // including the one that failed before
    CHECK(job.report.counts.ok == 11);
    CHECK(read_output(corpus.path("out_a.h5")).mel_bytes.starts_with(before));
    check_as_full(corpus, files);
    CHECK(completed(corpus.run(kBoth, Update::append, files)).report.kept == 11);
    completed(corpus.run(kBoth, Update::compact, files));
    check_as_full(corpus, files);
  }
}

TEST_CASE("update of two outputs: files that are gone or have changed leave both") {
  const Corpus corpus;
  REQUIRE(corpus.run(kBoth).complete());
  std::filesystem::remove(corpus.path("clips/2.wav"));
  corpus.clip("4.wav", 71);
  corpus.clip("5.wav", 72);
  const std::string more = ", max_dropped: 50%";
  REQUIRE(corpus
              .run(Corpus::a("out", more) +
                       Corpus::chain("b", 40, "stage: npy_write, path: '${OUT}/out_b.npy'" + more),
                   Update::append)
              .complete());
  check_as_full(corpus);
}

TEST_CASE("update of two outputs: all that are refused are named, each by its own node") {
  const Corpus corpus;
  REQUIRE(corpus.run(kBoth).complete());
  for (const char* name : {"clips/0.wav", "clips/2.wav", "clips/4.wav"})
    std::filesystem::remove(corpus.path(name));
  const JobResult job = corpus.run(kBoth, Update::append);
  CHECK_FALSE(job.started);
  for (const auto& [name, node] : {std::pair{"out_a.h5", "write_a"}, {"out_b.npy", "write_b"}}) {
    CHECK(job.error.find(corpus.path(name) + ": 3 of its ") != job.error.npos);
    CHECK(job.error.find(fmt::format("set {0}.max_dropped, such as --set {0}.max_dropped=100%",
                                     node)) != job.error.npos);
  }
}

TEST_CASE("update of two outputs: each takes what it needs where one is ahead of the other") {
  const Corpus corpus;
  REQUIRE(corpus.run(kBoth).complete());
  corpus.clip("1.wav", 51);
  corpus.clip("3.wav", 52);
  REQUIRE(corpus.run(Corpus::a("out"), Update::append).complete());
  corpus.clip("5.wav", 53);
  REQUIRE(corpus.run(Corpus::b("out"), Update::append).complete());
  corpus.clip("7.wav", 54);
  std::filesystem::remove(corpus.path("clips/0.wav"));
  const std::string more = ", max_dropped: 50%";
  corpus.clip("2.wav", 55);
  const JobResult job = completed(
      corpus.run(Corpus::a("out", more) +
                     Corpus::chain("b", 40, "stage: npy_write, path: '${OUT}/out_b.npy'" + more),
                 Update::append));
  CHECK(job.stage("decode").items_in == 4);  // 2, 5, 7, broken
  CHECK(job.stage("batch_a").items_in == 3);
  CHECK(job.stage("batch_b").items_in == 2);
  CHECK(kept_by(job, "write_a") == 9);
  CHECK(kept_by(job, "write_b") == 10);
  check_as_full(corpus);
}

TEST_CASE("update of two outputs: one that is new is made, and the other is not touched") {
  const Corpus corpus;
  REQUIRE(corpus.run(Corpus::a("out")).complete());
  const std::string before = read_bytes(corpus.path("out_a.h5"));
  const JobResult job = completed(corpus.run(kBoth, Update::append));
  CHECK(job.stage("decode").items_in == 10);
  CHECK(job.stage("batch_a").items_in == 0);
  CHECK(job.stage("batch_b").items_in == 9);
  CHECK(job.report.counts.ok == 9);
  CHECK(kept_by(job, "write_a") == 9);
  CHECK(read_output(corpus.path("out_a.h5")).mel_bytes.size() <= before.size());
  check_as_full(corpus);
}

TEST_CASE("update of two outputs: two sinks of the same rows that have different files") {
  const Corpus corpus;
  const std::string first = Corpus::a("out");
  const std::string second = "  more: {stage: npy_write, from: mel_a, path: '${OUT}/more.npy'}\n";
  REQUIRE(corpus.run(first).complete());
  corpus.clip("1.wav", 51);
  CHECK(completed(corpus.run(first + second, Update::append)).report.counts.ok == 10);
  REQUIRE(corpus
              .run(Corpus::a("full") +
                   "  more: {stage: npy_write, from: mel_a, path: '${OUT}/full.npy'}\n")
              .complete());
  CHECK(read(corpus.path("out_a.h5")) == read(corpus.path("full_a.h5")));
  CHECK(read_bytes(corpus.path("more.npy")) == read_bytes(corpus.path("full.npy")));
  CHECK(read_bytes(corpus.path("more.index.npy")) == read_bytes(corpus.path("full.index.npy")));
}

TEST_CASE("update of two outputs: statistics are those of all rows") {
  const Corpus corpus;
  const auto nodes = [](const std::string& out) {
    return Corpus::a(out, ", statistics: all, overwrite: true") +
           fmt::format(
               "  more: {{stage: hdf5_write, from: mel_a, path: '${{OUT}}/{}_m.h5', "
               "statistics: all, overwrite: true}}\n",
               out);
  };
  REQUIRE(corpus.run(Corpus::a("out", ", statistics: all")).complete());
  corpus.clip("1.wav", 51);
  REQUIRE(corpus.run(nodes("out"), Update::append).complete());
  REQUIRE(corpus.run(nodes("full")).complete());
  for (const char* name : {"a", "m"})
    for (const char* column : {"mean", "std"})
      CHECK(H5File(corpus.path(fmt::format("out_{}.h5", name)))
                .raw(std::string("statistics/") + column) ==
            H5File(corpus.path(fmt::format("full_{}.h5", name)))
                .raw(std::string("statistics/") + column));
}

TEST_CASE("update of two outputs: a file that fails now stays where it was") {
  const Corpus corpus;
  REQUIRE(corpus.run(Corpus::a("out")).complete());
  // Files too short for the second output would be missing in both if they were computed again.
  const std::string strict =
      "  short: {stage: segment, from: decode, min_length: 6000}\n" +
      Corpus::chain("c", 40, "stage: hdf5_write, path: '${OUT}/out_c.h5'", "short");
  const auto before = read(corpus.path("out_a.h5"));
  const JobResult job = completed(corpus.run(Corpus::a("out") + strict, Update::append));
  CHECK(job.report.counts.ok == 9);
  CHECK(job.report.counts.failed == 1);
  CHECK(read(corpus.path("out_a.h5")) == before);
  const FeatureFile second(corpus.path("out_c.h5"));
  for (const FeatureFile::Entry& e : second.files())
    CHECK((e.count > 0) == (e.duration * 8000 >= 6000));
}

TEST_CASE("update of two outputs: files that a route parts") {
  const Corpus corpus;
  const auto nodes = [](const std::string& out) {
    return "  way: {stage: route, from: decode, outputs: {short: {duration: \"< 0.65s\"}}, else: "
           "long}\n"
           "  cut_a: {stage: segment, from: way.short}\n"
           "  cut_b: {stage: segment, from: way.long}\n" +
           Corpus::chain("a", 20, fmt::format("stage: hdf5_write, path: '${{OUT}}/{}_a.h5'", out),
                         "cut_a") +
           Corpus::chain("b", 40, fmt::format("stage: npy_write, path: '${{OUT}}/{}_b.npy'", out),
                         "cut_b");
  };
  REQUIRE(corpus.run(nodes("out")).complete());
  corpus.clip("1.wav", 50);  // short
  corpus.clip("3.wav", 54);
  const JobResult job = completed(corpus.run(nodes("out"), Update::append));
  CHECK(job.report.counts.ok == 11);
  CHECK(job.report.counts.skipped == 0);
  CHECK(job.stage("batch_a").items_in == 1);
  CHECK(job.stage("batch_b").items_in == 1);
  CHECK(job.stage("decode").items_in == 3);  // including the one that failed before
  CHECK(job.report.kept == 9);
  REQUIRE(corpus.run(nodes("full")).complete());
  CHECK(read(corpus.path("out_a.h5")) == read(corpus.path("full_a.h5")));
  CHECK(read(corpus.path("out_b.npy")) == read(corpus.path("full_b.npy")));
}

TEST_CASE("update of two outputs: utterances of a recording that only one has") {
  const Corpus corpus;
  const auto list = [&](int most) {
    std::string text = "path,start,end\n";
    for (const char* name : {"0.wav", "2.wav", "4.wav"})
      for (int i = 0; i < most; ++i)
        text += fmt::format("{},{},{}\n", name, i * 0.1, i * 0.1 + 0.1);
    corpus.folder().write("list.csv", text);
  };
  const std::string files =
      fmt::format(", manifest: '{}', utterances: {{}}", corpus.path("list.csv"));
  list(1);
  REQUIRE(corpus.run(kBoth, Update::none, files).complete());
  list(2);
  REQUIRE(corpus.run(Corpus::a("out"), Update::append, files).complete());
  list(3);
  const JobResult job = completed(corpus.run(kBoth, Update::append, files));
  CHECK(job.report.counts.ok == 9);
  CHECK(job.report.kept == 3);
  CHECK(job.stage("batch_a").items_in == 3);
  CHECK(job.stage("batch_b").items_in == 6);
  check_as_full(corpus, files);
}

TEST_CASE("update of two outputs: splits are those of any of them") {
  const Corpus corpus;
  const std::string ratio =
      ", splits: ratio, split_ratios: {train: 60, test: 40}, split_stratify: false, split_seed: ";
  REQUIRE(corpus.run(Corpus::b("out"), Update::none, ratio + "1").complete());
  CHECK(completed(corpus.run(kBoth, Update::append, ratio + "2")).report.kept == 0);
  REQUIRE(corpus.run(Corpus::a("full"), Update::none, ratio + "1").complete());
  REQUIRE(corpus.run(Corpus::a("other"), Update::none, ratio + "2").complete());
  const auto splits = [&](const std::string& name) {
    const FeatureFile file(corpus.path(name));
    std::map<std::string, int> out;
    for (const FeatureFile::Entry& e : file.files()) out[e.path] = e.split;
    return out;
  };
  CHECK(splits("out_a.h5") == splits("full_a.h5"));
  CHECK(splits("full_a.h5") != splits("other_a.h5"));
}

TEST_CASE("update of two outputs: splits that differ are told, and become one") {
  const Corpus corpus;
  const std::string ratio =
      ", splits: ratio, split_ratios: {train: 60, test: 40}, split_stratify: false, split_seed: ";
  REQUIRE(corpus.run(Corpus::a("out"), Update::none, ratio + "1").complete());
  REQUIRE(corpus.run(Corpus::b("out"), Update::none, ratio + "2").complete());
  const JobResult job = completed(corpus.run(kBoth, Update::append, ratio + "3"));
  std::string warnings;
  for (const std::string& w : job.report.warnings) warnings += w + "\n";
  CAPTURE(warnings);
  CHECK(warnings.find(" files are in another split in one output than in the other, such as ") !=
        std::string::npos);
  const auto splits = [&](const std::vector<std::string>& names) {
    std::map<std::string, std::string> out;
    for (const std::string& name : names) {
      const FeatureFile file(corpus.path(name));
      for (const FeatureFile::Entry& e : file.files())
        out[e.path] = file.splits().at(static_cast<std::size_t>(e.split));
    }
    return out;
  };
  CHECK(splits({"out_a.h5"}) == splits({"out_b.train.npy", "out_b.test.npy"}));
}

TEST_CASE("update of two outputs: of two corpora, each with an output of its own") {
  const Corpus corpus;
  write_wav(corpus.folder().file("more/0.wav"), 6000, 8000, 90);
  const auto run = [&](const std::string& out, Update update) {
    std::string text = "version: 1\ngraph:\n";
    for (const char* name : {"clips", "more"})
      text += fmt::format(
          R"(  {0}: {{stage: file_list, root: "{1}"}}
  read_{0}: {{stage: disk_read, from: {0}}}
  decode_{0}: {{stage: decode, from: read_{0}}}
  cut_{0}: {{stage: segment, from: decode_{0}}}
{2})",
          name, corpus.path(name),
          Corpus::chain(name, 20,
                        fmt::format("stage: hdf5_write, path: '{}_{}.h5'", corpus.path(out), name),
                        fmt::format("cut_{}", name)));
    return run_job(text, {}, {}, update);
  };
  REQUIRE(run("out", Update::none).complete());
  corpus.clip("1.wav", 51);
  write_wav(corpus.path("more/1.wav"), 6000, 8000, 91);
  const JobResult job = completed(run("out", Update::append));
  CHECK(job.report.counts.ok == 12);
  CHECK(job.stage("batch_clips").items_in == 1);
  CHECK(job.stage("batch_more").items_in == 1);
  CHECK(job.stage("read_clips").items_in == 2);  // including the one that failed before
  CHECK(job.stage("read_more").items_in == 1);
  REQUIRE(run("full", Update::none).complete());
  for (const char* name : {"clips", "more"})
    CHECK(read(corpus.path(fmt::format("out_{}.h5", name))) ==
          read(corpus.path(fmt::format("full_{}.h5", name))));
}

TEST_CASE("update of two outputs: one that fails leaves all of them as they were") {
  const Corpus corpus;
  REQUIRE(corpus.run(kBoth).complete());
  const auto state = [&] {
    std::map<std::string, std::string> out;
    for (const auto& entry : std::filesystem::directory_iterator(corpus.folder().path()))
      if (entry.is_regular_file()) out[entry.path().filename()] = read_bytes(entry.path());
    return out;
  };
  const auto before = state();
  SUBCASE("while rows come") {
    for (int i = 0; i < 9; ++i) corpus.folder().write(fmt::format("clips/x{}.wav", i), "no sound");
    corpus.clip("1.wav", 51);
    CHECK(corpus.run(kBoth, Update::append, "", "max_failures: 3").report.ending == Ending::failed);
  }
  SUBCASE("when the first is complete and the second cannot be") {
    for (int i = 0; i < 40; ++i) corpus.clip(fmt::format("1{}.wav", 100 + i), i);
    // Room for the rows of the second output, but not for the header at its end.
    REQUIRE(corpus
                .run(Corpus::a("full") +
                     Corpus::chain("b", 400, "stage: hdf5_write, path: '${OUT}/full_b.h5'"))
                .complete());
    const std::uint64_t whole = std::filesystem::file_size(corpus.path("full_b.h5"));
    for (const char* name : {"full_a.h5", "full_b.h5"}) std::filesystem::remove(corpus.path(name));
    const FileSizeLimit limit(whole - 2000);
    const JobResult job = corpus.run(
        Corpus::a("out") + Corpus::chain("b", 400, "stage: hdf5_write, path: '${OUT}/new_b.h5'"),
        Update::append);
    CHECK(job.error.find("new_b.h5") != std::string::npos);
  }
  SUBCASE("as one of them cannot be updated") {
    const JobResult job = corpus.run(
        Corpus::a("out") + Corpus::chain("b", 41, "stage: npy_write, path: '${OUT}/out_b.npy'"),
        Update::append);
    CHECK(job.error.starts_with(corpus.path("out_b.npy") +
                                ": holds other features than this pipeline makes"));
  }
  CHECK(state() == before);
}

}  // namespace melflow::test::update_outputs_test
