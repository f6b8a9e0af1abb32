// Routes, filters, joins and branches that fail alone, in whole runs: every output has the rows of
// a plain run over its files alone, and reports the fate of the other files.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <map>
#include <set>
#include <string>
#include <vector>

#include "stages/output/formats/feature_file.h"
#include "tests/jobs/shared.h"
#include "tests/support/audio_files.h"
#include "tests/support/job.h"
#include "tests/support/printing.h"
#include "tests/support/temp_folder.h"

namespace melflow::test::routing_test {
namespace {

constexpr int kRate = 8000;
using Names = std::set<std::string>;

// Dogs and cats of 0.25 s, 0.5 s, ... 2 s; "dog/7" has several blocks where these are small.
class Corpus {
 public:
  Corpus() {
    for (unsigned i = 0; i < 8; ++i)
      for (const char* label : {"cat", "dog"})
        write_wav(folder_.file(fmt::format("clips/{}/{}.wav", label, i)),
                  i == 7 ? 100'000 : 2000 * (i + 1), kRate, i + (*label == 'd' ? 50 : 0));
    folder_.write("clips/dog/broken.wav", "no sound");
    folder_.write("list.csv", "path,who\ncat/0.wav,ann\ncat/1.wav,bob\ndog/0.wav,\n");
  }
  [[nodiscard]] std::string path(const std::string& name) const { return folder_ / name; }

  // `nodes`: lines after decode. `list`: options of the source.
  JobResult run(const std::string& nodes, const std::string& list = "labels: parent_dir",
                int workers = 2, Update update = Update::none) const {
    return run_job(fmt::format(R"(version: 1
workers: {}
graph:
  files: {{stage: file_list, root: "${{DATA}}", {}}}
  read: {{stage: disk_read, from: files}}
  decode: {{stage: decode, from: read, block: 64KiB}}
{})",
                               workers, list, nodes),
                   in_out(path("clips"), folder_.path()), {}, update);
  }

  // Returns the lines of a chain to an output.
  static std::string chain(const std::string& from, const std::string& name,
                           const std::string& options = "") {
    const bool is_npy = name.ends_with(".npy");
    const std::string n = name.substr(0, name.find('.'));
    return fmt::format(R"(  s_{0}: {{stage: segment, from: {1}{3}}}
  b_{0}: {{stage: batch, from: s_{0}, files: 3}}
  m_{0}: {{stage: mel, from: b_{0}, sample_rate: 8000, n_fft: 256, hop: 80, n_mels: 20}}
  w_{0}: {{stage: {4}, from: m_{0}, path: "${{OUT}}/{2}", overwrite: true}}
)",
                       n, from, name, options, is_npy ? "npy_write" : "hdf5_write");
  }

 private:
  TempFolder folder_;
};

struct Read {
  std::map<std::string, std::vector<float>> rows;  // only of files with rows
  std::map<std::string, std::string> remarks;      // "skipped route reason"
  std::map<std::string, std::int64_t> counts;
};

Read read(const std::string& path) {
  const FeatureFile file(path);
  Read out;
  for (const FeatureFile::Entry& e : file.files())
    if (e.count > 0)
      out.rows[e.path] =
          file.read_rows(static_cast<std::uint64_t>(e.offset), static_cast<std::uint64_t>(e.count));
  for (const FeatureFile::Remark& r : file.remarks())
    out.remarks[r.path] = fmt::format("{} {} {}", to_text(r.status), r.stage, r.reason);
  for (const char* name : {"found", "ok", "skipped", "failed", "not_run"})
    out.counts[name] = *file.integer(name);
  return out;
}

Names names(const Read& r) {
  Names out;
  for (const auto& [name, rows] : r.rows) out.insert(name);
  return out;
}

// Returns the rows of all files in a run without routes.
const Read& plain(const Corpus& corpus) {
  static std::map<const Corpus*, Read> all;
  const auto [it, is_new] = all.try_emplace(&corpus);
  if (is_new) {
    REQUIRE(corpus.run(Corpus::chain("decode", "plain.h5")).complete());
    it->second = read(corpus.path("plain.h5"));
  }
  return it->second;
}

void check_rows(const Read& some, const Corpus& corpus) {
  for (const auto& of_file : some.rows) {
    const auto& name = of_file.first;
    CAPTURE(name);
    CHECK(of_file.second == plain(corpus).rows.at(name));
  }
}

}  // namespace

TEST_CASE("routing: files leave by the first output whose conditions they meet, and by no other") {
  const Corpus corpus;
  const std::string nodes = R"(  route:
    stage: route
    from: decode
    outputs:
      long:  {duration: "> 10s"}
      dogs:  {label: dog, duration: 0.5s..1.25s}
      named: {path: [cat/0.wav, cat/1.wav, "dog/0*"]}
    else: rest
)" + Corpus::chain("route.long", "long.h5") +
                            Corpus::chain("route.dogs", "dogs.npy") +
                            Corpus::chain("route.named", "named.h5") +
                            Corpus::chain("route.rest", "rest.h5");
  const std::map<std::string, Names> expected{
      {"long.h5", {"cat/7.wav", "dog/7.wav"}},
      {"dogs.npy", {"dog/1.wav", "dog/2.wav", "dog/3.wav", "dog/4.wav"}},
      {"named.h5", {"cat/0.wav", "cat/1.wav", "dog/0.wav"}},
      {"rest.h5",
       {"cat/2.wav", "cat/3.wav", "cat/4.wav", "cat/5.wav", "cat/6.wav", "dog/5.wav",
        "dog/6.wav"}}};
  for (const int workers : {1, 2, 4}) {
    CAPTURE(workers);
    const JobResult job = completed(corpus.run(nodes, "labels: parent_dir", workers));
    CHECK(job.report.counts.ok == 16);
    CHECK(job.report.counts.failed == 1);
    for (const auto& [of_output, files] : expected) {
      const std::string output = of_output;
      CAPTURE(output);
      const Read got = read(corpus.path(output));
      CHECK(names(got) == files);
      check_rows(got, corpus);
      const auto left_out = static_cast<std::int64_t>(16 - files.size());
      CHECK(got.counts ==
            std::map<std::string, std::int64_t>{{"found", 17},
                                                {"ok", static_cast<std::int64_t>(files.size())},
                                                {"skipped", left_out},
                                                {"failed", 1},
                                                {"not_run", 0}});
      CHECK(got.remarks.size() == 17 - files.size());
      CHECK(got.remarks.at("dog/broken.wav").starts_with("failed decode "));
      if (output != "long.h5")
        CHECK(got.remarks.at("dog/7.wav") == "skipped route leaves by output 'long'");
    }
  }
}

TEST_CASE("routing: what a filter excludes is skipped, with what it lacks") {
  const Corpus corpus;
  struct Row {
    const char* where;
    Names files;
    const char* of_dog_0;  // why that file is excluded
  };
  const Row rows[] = {
      {"{duration: \">= 1.75s\"}",
       {"cat/6.wav", "cat/7.wav", "dog/6.wav", "dog/7.wav"},
       "duration is 0.25 s, not >= 1.75s"},
      {"{duration: [\"< 500ms\", 12s..1min], label: cat}",
       {"cat/0.wav", "cat/7.wav"},
       "label is dog, not cat"},
      {"{size: \"< 5000\", label: \"!dog\"}", {"cat/0.wav"}, "label is dog, not !dog"},
      {"{path: \"dog/*\", size: \"> 20KB\"}",
       {"dog/4.wav", "dog/5.wav", "dog/6.wav", "dog/7.wav"},
       "size is 4044 bytes, not > 20KB"},
      {"{rate: 16kHz}", {}, "rate is 8000 Hz, not 16kHz"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.where);
    const JobResult job = corpus.run(
        fmt::format("  filter: {{stage: filter, from: decode, where: {}}}\n", row.where) +
        Corpus::chain("filter", "some.h5"));
    CHECK(job.report.counts.ok == row.files.size());
    CHECK(job.report.counts.skipped == 16 - row.files.size());
    if (row.files.empty()) continue;  // such a run leaves the earlier output
    REQUIRE_MESSAGE(job.complete(), job.text());
    const Read got = read(corpus.path("some.h5"));
    CHECK(names(got) == row.files);
    check_rows(got, corpus);
    CHECK(got.remarks.at("dog/0.wav") == std::string("skipped filter ") + row.of_dog_0);
  }
  // Routes by a column of a table, before anything is read.
  completed(run_job(fmt::format(R"(version: 1
graph:
  files: {{stage: file_list, root: "${{DATA}}", manifest: '{}', columns: [who]}}
  filter: {{stage: filter, from: files, where: {{column.who: "?*"}}}}
  read: {{stage: disk_read, from: filter}}
  decode: {{stage: decode, from: read}}
)",
                                corpus.path("list.csv")) +
                        Corpus::chain("decode", "who.h5"),
                    in_out(corpus.path("clips"), corpus.path(""))));
  const Read got = read(corpus.path("who.h5"));
  CHECK(names(got) == Names{"cat/0.wav", "cat/1.wav"});
  CHECK(got.remarks ==
        std::map<std::string, std::string>{{"dog/0.wav", "skipped filter column.who is , not ?*"}});
}

TEST_CASE(
    "routing: an update by other conditions is refused, since files that stay are not asked") {
  const Corpus corpus;
  const auto dogs_or = [&](const char* label, Update update) {
    return corpus.run(
        fmt::format("  filter: {{stage: filter, from: decode, where: {{label: {}}}}}\n", label) +
            Corpus::chain("filter", "some.h5"),
        "labels: parent_dir", 2, update);
  };
  REQUIRE(dogs_or("dog", Update::none).complete());
  const std::string before = read_bytes(corpus.path("some.h5"));
  CHECK(dogs_or("cat", Update::append).error.find("holds other features") != std::string::npos);
  CHECK(read_bytes(corpus.path("some.h5")) == before);
  REQUIRE(dogs_or("dog", Update::append).complete());
  // The same holds for the two outputs of a route.
  REQUIRE(corpus
              .run("  route: {stage: route, from: decode, outputs: {a: {label: dog}}, else: b}\n" +
                   Corpus::chain("route.a", "a.h5") + Corpus::chain("route.b", "b.h5"))
              .complete());
  CHECK(FeatureFile(corpus.path("a.h5")).text("feature_fingerprint") !=
        FeatureFile(corpus.path("b.h5")).text("feature_fingerprint"));
}

TEST_CASE("routing: what was parted is joined again, in the order of the files") {
  const Corpus corpus;
  const std::string nodes =
      R"(  route: {stage: route, from: decode, outputs: {short: {duration: "< 1s"}}, else: long}
  half: {stage: resample, from: route.short, rate: 4000}
  back: {stage: resample, from: half, rate: 8000}
  join: {stage: merge, from: [route.long, back]}
)" + Corpus::chain("join", "joined.h5");
  completed(corpus.run(nodes));
  const Read got = read(corpus.path("joined.h5"));
  CHECK(got.counts.at("ok") == 16);
  for (const auto& of_file : got.rows) {
    const auto& name = of_file.first;
    CAPTURE(name);
    const bool is_short = name < "cat/3" || (name > "dog" && name < "dog/3");
    CHECK((of_file.second == plain(corpus).rows.at(name)) == !is_short);
  }
  const FeatureFile file(corpus.path("joined.h5"));
  std::int64_t next = 0;
  for (const FeatureFile::Entry& e : file.files()) {
    if (e.count == 0) continue;
    CHECK(e.offset == next);
    next += e.count;
  }
  // Both inputs are part of the settings that determine the rows.
  CHECK(file.text("feature_settings").find("\"inputs\"") != std::string::npos);
}

TEST_CASE("routing: with on_failure: branch a file is missing only where it cannot be") {
  const Corpus corpus;
  const std::string tail = Corpus::chain("decode", "all.h5");
  for (const bool is_alone : {true, false}) {
    CAPTURE(is_alone);
    // A window of a second: short files are skipped, and long ones fail because of a wrong rate.
    const std::string branch = fmt::format(
        "  route: {{stage: route, from: decode, outputs: {{seven: {{path: \"*/7.wav\"}}}}, else: "
        "others{}}}\n"
        "  slow: {{stage: resample, from: route.seven, rate: 4000}}\n"
        "  join: {{stage: merge, from: [route.others, slow]}}\n",
        is_alone ? ", on_failure: branch" : "");
    const std::string chain = Corpus::chain("join", "windows.h5", ", length: 8000");
    const JobResult job = completed(corpus.run(fmt::format("{}{}{}", branch, chain, tail)));
    const Read windows = read(corpus.path("windows.h5")), all = read(corpus.path("all.h5"));
    const Names whole{"cat/3.wav", "cat/4.wav", "cat/5.wav", "cat/6.wav",
                      "dog/3.wav", "dog/4.wav", "dog/5.wav", "dog/6.wav"};
    CHECK(names(windows) == whole);
    CHECK(windows.remarks.at("cat/0.wav") ==
          "skipped s_windows shorter than one window: 2000 samples of 8000 (0.250 s of 1 s)");
    CHECK(windows.remarks.at("cat/7.wav").starts_with("failed m_windows is sampled at 4000 Hz"));
    if (!is_alone) {
      CHECK(names(all) == whole);
      CHECK(job.report.counts.ok == 8);
      continue;
    }
    CHECK(job.report.counts.ok == 16);
    CHECK(job.report.counts.warned == 2);
    CHECK(names(all) == names(plain(corpus)));
    check_rows(all, corpus);
    CHECK(all.remarks.at("cat/7.wav")
              .starts_with("ok m_windows is not in every output: is sampled at 4000 Hz"));
    CHECK(all.remarks.size() == 3);
  }
}

TEST_CASE(
    "routing: by the number of channels of a file, also where its samples come from a store") {
  const TempFolder folder;
  const std::map<std::string, int> channels{{"a.wav", 1},  {"b.wav", 2}, {"c.flac", 1},
                                            {"d.flac", 2}, {"e.ogg", 2}, {"f.mp3", 1}};
  const std::map<std::string, const char*> kinds{
      {"wav", "wav s16"}, {"flac", "flac s16"}, {"ogg", "ogg vorbis"}, {"mp3", "mp3"}};
  for (const auto& [name, count] : channels) {
    AudioKind kind = audio_kind(kinds.at(name.substr(2)));
    kind.channels = count;
    write_audio(folder.file("clips/" + name), kind, 16000, test_signal(9000, count));
  }
  for (const char* feed : {"stream", "preload", "cache", "cache"}) {
    CAPTURE(feed);
    completed(run_job(
        fmt::format(R"(version: 1
graph:
  files: {{stage: file_list, root: "${{DATA}}", feed: {}{}}}
  read: {{stage: disk_read, from: files}}
  decode: {{stage: decode, from: read}}
  rate: {{stage: resample, from: decode, rate: 8000}}
  way: {{stage: route, from: rate, outputs: {{mono: {{channels: 1}}}}, else: more}}
  two: {{stage: filter, from: way.more, where: {{channels: ["2", "> 5"]}}}}
{}{})",
                    feed, *feed == 'c' ? fmt::format(", cache_path: \"{}\"", folder / "cache") : "",
                    Corpus::chain("way.mono", "mono.h5"), Corpus::chain("two", "two.h5")),
        in_out(folder / "clips", folder.path())));
    CHECK(names(read(folder / "mono.h5")) == Names{"a.wav", "c.flac", "f.mp3"});
    CHECK(names(read(folder / "two.h5")) == Names{"b.wav", "d.flac", "e.ogg"});
  }
}

}  // namespace melflow::test::routing_test
