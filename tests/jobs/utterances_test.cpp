// Utterances of recordings: the rows of each equal those of a file with the same samples, whatever
// the blocks, the memory and the number of workers are; each has its own record, whatever happens
// to its recording.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "config/load.h"
#include "pipeline/base/problem.h"
#include "stages/output/formats/feature_file.h"
#include "tests/support/audio_files.h"
#include "tests/support/job.h"
#include "tests/support/printing.h"
#include "tests/support/temp_folder.h"

namespace melflow::test::utterances_test {
namespace {

constexpr int kRate = 16000;

struct Knobs {
  int workers = 2, batch = 3;
  std::string memory = "256MiB", block = "2MiB", whole = "4MiB";
  std::string list = "utterances: {}, labels: manifest";  // options of the source
  std::string nodes = {};                                 // between decode and segment, with `from`
  std::string decode = {};                                // options of decode
  std::string mel = {};
  std::string filter = {};  // applied to recordings
};

std::string pipeline(const Knobs& k, const std::string& manifest, const std::string& last) {
  return fmt::format(
      R"(version: 1
workers: {}
memory: {{host: {}}}
graph:
  files: {{stage: file_list, root: "${{DATA}}", manifest: "${{DATA}}/{}", {}}}
{}  read: {{stage: disk_read, from: {}, whole: {}}}
  decode: {{stage: decode, from: read, block: {}{}}}
{}  segment: {{stage: segment, from: {}}}
  batch: {{stage: batch, from: segment, files: {}}}
  mel: {{stage: mel, from: batch, sample_rate: 16000, n_fft: 512, hop: 160, n_mels: 20{}}}
  write: {{stage: hdf5_write, from: mel, path: "${{OUT}}", overwrite: true}}
)",
      k.workers, k.memory, manifest, k.list,
      k.filter.empty()
          ? ""
          : fmt::format("  some: {{stage: filter, from: files, where: {{{}}}}}\n", k.filter),
      k.filter.empty() ? "files" : "some", k.whole, k.block, k.decode, k.nodes, last, k.batch,
      k.mel);
}

struct Utterance {
  std::string recording;
  double start, end;  // [s]; end < 0: not given
  std::string label;

  [[nodiscard]] std::string name() const {
    return end < 0 ? fmt::format("{}#t={}", recording, start)
                   : fmt::format("{}#t={},{}", recording, start, end);
  }
};

class Corpus {
 public:
  // Recordings of 6, 20 and 41 s: int16 samples in WAV, in FLAC, and float32.
  Corpus() {
    add("short.wav", audio_kind("wav s16"), 6 * kRate, 1);
    add("sub/mono.flac", audio_kind("flac s16"), 20 * kRate, 2);
    add("long.wav", audio_kind("wav float"), 41 * kRate, 3);
  }

  void list(const std::string& name, const std::vector<Utterance>& utterances) {
    std::string text = "path,start,end,label\n";
    for (const Utterance& u : utterances)
      text += fmt::format("{},{},{},{}\n", u.recording, u.start,
                          u.end < 0 ? "" : fmt::to_string(u.end), u.label);
    folder_.write("data/" + name, text);
  }
  JobResult run(const Knobs& k, const std::string& manifest, const std::string& out,
                Update update = Update::none) {
    return run_job(pipeline(k, manifest, k.nodes.empty() ? "decode" : "last"),
                   in_out(folder_ / "data", folder_ / out), {}, update);
  }
  /// Returns the rows of files with the same samples, by the names of the utterances.
  std::map<std::string, std::vector<float>> expected(const std::vector<Utterance>& utterances) {
    std::string text;
    for (std::size_t i = 0; i < utterances.size(); ++i) {
      const Utterance& u = utterances[i];
      const auto& recording = recordings_.at(u.recording);
      const auto& samples = recording.second;
      const auto at = [&](double seconds) {
        return std::min<std::ptrdiff_t>(std::lround(seconds * kRate),
                                        static_cast<std::ptrdiff_t>(samples.size()));
      };
      const std::ptrdiff_t from = at(u.start), to = u.end < 0 ? at(1e6) : at(u.end);
      const std::string name = fmt::format("cut/{}.{}", i, recording.first->ending);
      write_audio(folder_.file("data/" + name), *recording.first, kRate,
                  std::vector<float>(samples.begin() + from, samples.begin() + to));
      text += name + "\n";
    }
    folder_.write("data/cut.txt", text);
    Knobs plain;
    plain.list = "exclude: []";
    REQUIRE(run(plain, "cut.txt", "cut.h5").complete());
    const Output out = read_output(folder_ / "cut.h5");
    std::map<std::string, std::vector<float>> rows;
    for (std::size_t i = 0; i < utterances.size(); ++i)
      rows[utterances[i].name()] = out.rows_of(out.files[i].path);
    return rows;
  }
  [[nodiscard]] std::string path(const std::string& name) const { return folder_ / name; }
  TempFolder& folder() { return folder_; }

 private:
  void add(const std::string& name, const AudioKind& kind, std::int64_t frames, unsigned seed) {
    recordings_[name] = {&kind, test_signal(frames, 1, seed)};
    write_audio(folder_.file("data/" + name), kind, kRate, recordings_[name].second);
  }

  TempFolder folder_;
  std::map<std::string, std::pair<const AudioKind*, std::vector<float>>> recordings_;
};

std::map<std::string, std::vector<float>> rows_by_name(const std::string& path) {
  const Output out = read_output(path);
  std::map<std::string, std::vector<float>> rows;
  for (const Output::File& f : out.files) rows[f.path] = out.rows_of(f.path);
  return rows;
}

// Many utterances, some overlapping, in any order; one extends to the end.
std::vector<Utterance> many(unsigned seed) {
  std::mt19937 random(seed);
  const std::map<std::string, double> seconds{
      {"short.wav", 6}, {"sub/mono.flac", 20}, {"long.wav", 41}};
  std::vector<Utterance> out{{"long.wav", 38.25, -1, "end"}};
  std::set<std::string> names;
  for (const auto& [name, length] : seconds)
    for (int i = 0; i < 25; ++i) {
      const double start =
          static_cast<double>(random() % static_cast<unsigned>((length - 1) * 1000)) / 1000;
      const double duration = 0.2 + static_cast<double>(random() % 4000) / 1000;
      const double end = std::round(std::min(length, start + duration) * 1000) / 1000;
      Utterance u{name, start, end, i % 2 == 0 ? "even" : "odd"};
      if (names.insert(u.name()).second) out.push_back(std::move(u));
    }
  std::shuffle(out.begin(), out.end(), random);
  return out;
}

}  // namespace

TEST_CASE("utterances: have the rows of files with the same samples, whatever the bounds are") {
  Corpus corpus;
  const std::vector<Utterance> utterances = many(5);
  corpus.list("u.csv", utterances);
  const auto expected = corpus.expected(utterances);
  std::string first;
  for (const Knobs& k :
       {Knobs{}, Knobs{.workers = 1, .batch = 1, .block = "64KiB"},
        Knobs{.workers = 3, .batch = 50, .memory = "48MiB", .block = "64KiB", .whole = "64KiB"},
        Knobs{.workers = 2, .memory = "40MiB", .block = "256KiB", .whole = "64KiB"}}) {
    CAPTURE(k.memory);
    CAPTURE(k.block);
    const JobResult job = corpus.run(k, "u.csv", "u.h5");
    INFO(job.text());
    REQUIRE(job.complete());
    CHECK(job.report.counts.ok == utterances.size());
    CHECK(job.remarks.empty());
    CHECK(rows_by_name(corpus.path("u.h5")) == expected);
    CHECK(job.stage("files").items_out == 3);  // each recording is read once
    const Output out = read_output(corpus.path("u.h5"));
    if (first.empty()) first = out.mel_bytes;
    CHECK(out.mel_bytes == first);
    std::map<std::string, std::string> labels;
    for (const Utterance& u : utterances) labels[u.name()] = u.label;
    for (const Output::File& f : out.files) {
      CHECK(out.labels.at(static_cast<std::size_t>(f.label)) == labels.at(f.path));
      CHECK(f.sample_rate == kRate);
    }
  }
}

TEST_CASE("utterances: the index has their places, and their order is that of the recordings") {
  Corpus corpus;
  corpus.list("u.csv", {{"sub/mono.flac", 3, 4.5, "b"},
                        {"short.wav", 2, 3, "a"},
                        {"sub/mono.flac", 1.25, 3.5, "a"},
                        {"sub/mono.flac", 19, -1, "b"}});
  REQUIRE(corpus.run({}, "u.csv", "u.h5").complete());
  const FeatureFile file(corpus.path("u.h5"));
  std::vector<std::string> names;
  for (const FeatureFile::Entry& e : file.files()) names.push_back(e.path);
  CHECK(names == std::vector<std::string>{"sub/mono.flac#t=1.25,3.5", "sub/mono.flac#t=3,4.5",
                                          "sub/mono.flac#t=19", "short.wav#t=2,3"});
  CHECK(file.files()[0].start == 1.25);
  CHECK(file.files()[0].end == 3.5);
  CHECK(std::isinf(file.files()[2].end));
  CHECK(file.files()[0].duration == 2.25);
  CHECK(file.files()[2].duration == 1);
}

TEST_CASE("utterances: durations, samples and other names of columns") {
  Corpus corpus;
  const std::vector<Utterance> utterances{{"long.wav", 1.5, 3, ""}, {"long.wav", 2.5, 2.75, ""}};
  const auto expected = corpus.expected(utterances);
  const auto values = [&] {
    std::vector<std::vector<float>> rows;
    for (auto& [name, r] : rows_by_name(corpus.path("u.h5"))) rows.push_back(r);
    return rows;
  };
  const std::vector<std::vector<float>> wanted{expected.at("long.wav#t=1.5,3"),
                                               expected.at("long.wav#t=2.5,2.75")};
  corpus.folder().write("data/nemo.jsonl",
                        R"({"audio_filepath": "long.wav", "offset": 1.5, "duration": 1.5}
{"audio_filepath": "long.wav", "offset": 2.5, "duration": 0.25}
)");
  REQUIRE(corpus
              .run({.list = "columns_are: {path: audio_filepath, start: offset}, utterances: {}"},
                   "nemo.jsonl", "u.h5")
              .complete());
  CHECK(values() == wanted);
  corpus.folder().write("data/kaldi/segments", "one rec 1.5 3\ntwo rec 2.5 2.75\n");
  corpus.folder().write("data/kaldi/wav.scp", "rec long.wav\n");
  REQUIRE(corpus.run({.list = "utterances: {}, columns: [utterance]"}, "kaldi/segments", "u.h5")
              .complete());
  CHECK(values() == wanted);
  corpus.folder().write("data/samples.tsv",
                        "path\tfrom\tto\nlong.wav\t24000\t48000\nlong.wav\t40000\t44000\n");
  REQUIRE(corpus
              .run({.list = "columns_are: {start: from, end: to}, utterances: {unit: samples}"},
                   "samples.tsv", "u.h5")
              .complete());
  CHECK(values() == wanted);
  CHECK(read_output(corpus.path("u.h5")).files[0].path == "long.wav#samples=24000,48000");
}

TEST_CASE("utterances: what a bad line says of an utterance is kept") {
  Corpus corpus;
  corpus.folder().write("data/kaldi/segments", "one rec 1.5 3\ntwo rec 2.5\nthree none 1 2\n");
  corpus.folder().write("data/kaldi/wav.scp", "rec long.wav\n");
  corpus.folder().write("data/kaldi/text", "one A\ntwo B\nthree C\n");
  const JobResult job =
      corpus.run({.list = "utterances: {}, columns: [utterance, text]"}, "kaldi/segments", "u.h5");
  REQUIRE_MESSAGE(job.report.counts.failed == 2, job.text());
  std::vector<std::vector<std::string>> texts;
  const FeatureFile file(corpus.path("u.h5"));
  for (const FeatureData::Entry& e : file.files()) texts.push_back(e.texts);
  CHECK(texts == std::vector<std::vector<std::string>>{{"A", "one"}, {"B", "two"}, {"C", "three"}});
}

TEST_CASE("utterances: one that overlaps far with the one before it costs a second reading") {
  Corpus corpus;
  const std::vector<Utterance> utterances{{"long.wav", 0, 40, "all"},
                                          {"long.wav", 3, 9, "x"},
                                          {"long.wav", 12, 13, "x"},
                                          {"long.wav", 12.5, 30, "y"}};
  corpus.list("u.csv", utterances);
  const auto expected = corpus.expected(utterances);
  const JobResult job =
      corpus.run({.memory = "48MiB", .block = "64KiB", .whole = "64KiB"}, "u.csv", "u.h5");
  REQUIRE(job.complete());
  CHECK(rows_by_name(corpus.path("u.h5")) == expected);
  CHECK(job.stage("files").items_out == 2);
}

TEST_CASE("utterances: behind a resampler they are cut out of what it gives") {
  Corpus corpus;
  write_wav(corpus.path("data/slow.wav"), 8 * 8000, 8000, 7);
  corpus.folder().write("data/whole.txt", "slow.wav\n");
  corpus.list("u.csv", {{"slow.wav", 2, 4, "a"}, {"slow.wav", 3.5, -1, "a"}});
  Knobs k;
  k.nodes = "  last: {stage: resample, from: decode, rate: 16000}\n";
  k.mel = ", center: false";  // a frame every 160 samples, whatever comes before
  REQUIRE(corpus.run(k, "u.csv", "u.h5").complete());
  k.list = "exclude: []";
  REQUIRE(corpus.run(k, "whole.txt", "whole.h5").complete());
  const Output cut = read_output(corpus.path("u.h5")), whole = read_output(corpus.path("whole.h5"));
  const auto frames = [&](std::size_t from, std::size_t to) {
    return std::vector<float>(whole.mel.begin() + static_cast<std::ptrdiff_t>(from * 20),
                              whole.mel.begin() + static_cast<std::ptrdiff_t>(to * 20));
  };
  CHECK(cut.rows_of("slow.wav#t=2,4") == frames(200, 200 + (32000 - 512) / 160 + 1));
  CHECK(cut.rows_of("slow.wav#t=3.5") == frames(350, 350 + (72000 - 512) / 160 + 1));
  for (const Output::File& f : cut.files) CHECK(f.sample_rate == 8000);
  CHECK(cut.files[0].duration == 2);
  CHECK(cut.files[1].duration == 4.5);
}

TEST_CASE("utterances: what becomes of each, and what is said of its recording") {
  Corpus corpus;
  corpus.list("u.csv", {{"short.wav", 1, 2, ""},
                        {"short.wav", 5.5, 6.005, ""},  // rounded
                        {"short.wav", 5.5, 6.5, ""},
                        {"short.wav", 7, 8, ""},
                        {"missing.wav", 0, 1, ""},
                        {"missing.wav", 1, 2, ""},
                        {"sub/mono.flac", 3, 3.00001, ""}});
  const JobResult job = corpus.run({}, "u.csv", "u.h5");
  REQUIRE(job.complete());
  std::map<std::string, std::string> expected{
      {"short.wav#t=5.5,6.5",
       "ok: files.utterances: ends 0.500 s after the end of its recording: has the rest only"},
      {"short.wav#t=7,8",
       "failed: files.utterances: begins at 7.000 s, but the recording is only 6.000 s long"},
      {"missing.wav#t=0,1", "failed: read: does not exist (any more)"},
      {"missing.wav#t=1,2", "failed: read: does not exist (any more)"},
      {"sub/mono.flac#t=3,3.00001",
       "failed: files.utterances: is less than a sample long at 16000 Hz"}};
  const auto remarks = job.remarks_by_name();
  for (const auto& of_name : expected) {
    const auto& name = of_name.first;
    const auto& remark = of_name.second;
    CAPTURE(name);
    CHECK((remarks.contains(name) ? remarks.at(name) : "nothing") == remark);
  }
  CHECK(remarks.size() == expected.size());
  CHECK(job.report.counts.ok == 3);
}

TEST_CASE("utterances: of a recording that breaks off, those before the break are whole") {
  Corpus corpus;
  const std::string whole = corpus.path("data/sub/mono.flac");
  std::vector<Utterance> utterances;
  for (int i = 0; i < 19; ++i)
    utterances.push_back({"broken.flac", static_cast<double>(i), i + 1.0, "a"});
  corpus.list("u.csv", utterances);
  const std::string bytes = read_bytes(whole);
  copy_truncated(whole, corpus.path("data/broken.flac"),
                 static_cast<std::int64_t>(bytes.size() * 6 / 10));
  std::set<std::string> first;
  for (int round = 0; round < 6; ++round) {
    Knobs k{.workers = 1 + round % 3, .batch = 1 + round, .block = "64KiB", .whole = "64KiB"};
    k.decode = ", truncated: fail";
    const JobResult job = corpus.run(k, "u.csv", "u.h5");
    INFO(job.text());
    REQUIRE(job.complete());
    std::set<std::string> ok;
    for (const auto& [name, rows] : rows_by_name(corpus.path("u.h5")))
      if (!rows.empty()) ok.insert(name);
    CHECK(ok.size() > 3);
    CHECK(ok.size() < 13);
    if (first.empty()) first = ok;
    CHECK(ok == first);
    for (const auto& [name, remark] : job.remarks_by_name())
      CHECK(remark.starts_with("failed: decode: "));
    CHECK(job.remarks.size() == utterances.size() - ok.size());
  }
  // Where a truncated recording is accepted, the last utterance has the warning.
  const JobResult job =
      corpus.run({.block = "64KiB", .decode = ", truncated: keep"}, "u.csv", "u.h5");
  REQUIRE(job.complete());
  const auto remarks = job.remarks_by_name();
  CHECK(job.report.counts.ok >= 11);
  CHECK(remarks.at("broken.flac#t=18,19").starts_with("failed: files.utterances: begins at 18"));
}

TEST_CASE(
    "utterances: behind damage that may have moved them they fail, before it they are right") {
  struct Kind {
    const char *name, *ending;
    int rate;
    std::string nodes;
  };
  const std::string resample = "  last: {stage: resample, from: decode, rate: 16kHz}\n";
  const Kind kinds[] = {{"mp3", "mp3", kRate, ""}, {"mp3 stereo", "mp3", 44100, resample}};
  const auto zeros = [](std::string bytes, std::size_t at) {
    return bytes.replace(at, 3000, 3000, '\0');
  };
  const auto hole = [](std::string bytes, std::size_t at) { return bytes.erase(at, 3000); };
  for (const Kind& kind : kinds)
    for (const auto& damage :
         {std::function<std::string(std::string, std::size_t)>(zeros), {hole}}) {
      CAPTURE(kind.rate);
      Corpus corpus;
      const AudioKind& k = audio_kind(kind.name);
      const std::string path = corpus.path(std::string("data/rec.") + kind.ending);
      write_audio(path, k, kind.rate, test_signal(20 * kind.rate, k.channels));
      std::vector<Utterance> utterances;
      for (int i = 0; i < 39; ++i)
        utterances.push_back({std::string("rec.") + kind.ending, i / 2.0, i / 2.0 + 0.75, "a"});
      utterances.push_back({std::string("rec.") + kind.ending, 9.8, 10.3, "a"});
      utterances.push_back({std::string("rec.") + kind.ending, 4, -1, "a"});
      corpus.list("u.csv", utterances);
      const std::string bytes = read_bytes(path);
      REQUIRE(corpus.run({.nodes = kind.nodes}, "u.csv", "good.h5").complete());
      const auto good = rows_by_name(corpus.path("good.h5"));
      corpus.folder().write(std::string("data/rec.") + kind.ending,
                            damage(bytes, bytes.size() / 2));
      std::set<std::string> first;
      int round = 0;
      for (const char* block : {"64KiB", "2MiB"})
        for (const char* feed : {"stream", "preload"}) {
          ++round;
          Knobs knobs{.workers = 1 + round % 2, .batch = round, .block = block};
          knobs.nodes = kind.nodes;
          knobs.list += std::string(", feed: ") + feed;
          const JobResult job = corpus.run(knobs, "u.csv", "u.h5");
          INFO(job.text());
          REQUIRE(job.complete());
          std::set<std::string> ok;
          for (const auto& of_name : rows_by_name(corpus.path("u.h5"))) {
            const auto& name = of_name.first;
            const auto& rows = of_name.second;
            if (rows.empty()) continue;
            ok.insert(name);
            CAPTURE(name);
            CHECK(rows == good.at(name));
          }
          // Utterances up to about the middle are ok: 0 to 0.75, 0.5 to 1.25, ...
          CHECK(ok.size() >= 17);
          CHECK(ok.size() <= 20);
          if (first.empty()) first = ok;
          CHECK(ok == first);
          const auto remarks = job.remarks_by_name();
          CHECK(remarks.size() == utterances.size() - ok.size());
          for (const auto& of_name : remarks) {
            const auto& name = of_name.first;
            const auto& remark = of_name.second;
            CAPTURE(name);
            const bool goes_beyond = remark.starts_with("failed: files.utterances: goes beyond 9."),
                       is_behind = remark.starts_with("failed: files.utterances: begins behind 9.");
            CHECK((goes_beyond || is_behind ||
                   remark.starts_with("failed: files.utterances: goes beyond 10.") ||
                   remark.starts_with("failed: files.utterances: begins behind 10.")));
            CHECK(remark.find(" s, where its recording is damaged: how much is lost there is not "
                              "known, so that what follows is not at its time") != remark.npos);
          }
        }
    }
}

TEST_CASE("utterances: tags between the frames of an MP3 move nothing") {
  Corpus corpus;
  const std::string path = corpus.path("data/rec.mp3");
  write_audio(path, audio_kind("mp3"), kRate, test_signal(10 * kRate));
  const std::string one = read_bytes(path);
  // Header, 288 bytes of items, footer: the stated size excludes the header.
  const auto ape_end = [](char flags) {
    return "APETAGEX" + std::string("\xD0\x07\0\0\x40\x01\0\0\x01\0\0\0\0\0\0", 15) + flags +
           std::string(8, '\0');
  };
  const std::string ape = ape_end('\xA0') + std::string(288, 'x') + ape_end('\x80');
  const std::string id3 = "ID3\x04" + std::string("\0\0\0\0\x01\x48", 6) + std::string(200, 'x');
  corpus.list("u.csv", {{"rec.mp3", 1, 2, ""}, {"rec.mp3", 11, 12, ""}, {"rec.mp3", 15, -1, ""}});
  for (const std::string& between : {std::string(), "TAG" + std::string(125, 'x'), id3,
                                     ape + "TAG" + std::string(125, 'x') + id3}) {
    corpus.folder().write("data/rec.mp3", one + between + one);
    const JobResult job = corpus.run({}, "u.csv", "u.h5");
    INFO(job.text());
    CHECK(job.report.counts.ok == 3);
    CHECK(job.remarks.empty());
  }
}

TEST_CASE("utterances: behind a hole in a FLAC they are at their time, or fail") {
  Corpus corpus;
  const std::string path = corpus.path("data/rec.flac");
  write_audio(path, audio_kind("flac s16"), kRate, test_signal(120 * kRate));
  std::vector<Utterance> utterances;
  for (int i = 0; i < 119; ++i)
    utterances.push_back({"rec.flac", static_cast<double>(i), i + 1.0, "a"});
  corpus.list("u.csv", utterances);
  const std::string bytes = read_bytes(path);
  REQUIRE(corpus.run({}, "u.csv", "good.h5").complete());
  const auto good = rows_by_name(corpus.path("good.h5"));
  for (const double share : {0.01, 0.1, 0.3, 0.6}) {
    CAPTURE(share);
    std::string damaged = bytes;
    const auto length = static_cast<double>(bytes.size());
    damaged.erase(static_cast<std::size_t>(0.2 * length), static_cast<std::size_t>(share * length));
    corpus.folder().write("data/rec.flac", damaged);
    const JobResult job = corpus.run({.block = "64KiB"}, "u.csv", "u.h5");
    INFO(job.text());
    REQUIRE(job.complete());
    std::size_t ok = 0, others = 0;
    for (const auto& [name, rows] : rows_by_name(corpus.path("u.h5"))) {
      if (rows.empty()) continue;
      ++ok;
      if (rows != good.at(name)) ++others;  // lost samples are silent there
    }
    CHECK(ok >= 20);
    CHECK(static_cast<double>(others) <= share * 120 + 2);
  }
}

TEST_CASE("utterances: an update computes what is new and keeps the rest") {
  Corpus corpus;
  std::vector<Utterance> utterances = many(8);
  std::vector<Utterance> some;
  for (std::size_t i = 0; i < utterances.size(); ++i)
    if (i % 3 != 0) some.push_back(utterances[i]);
  corpus.list("u.csv", some);
  REQUIRE(corpus.run({}, "u.csv", "u.h5").complete());
  corpus.list("u.csv", utterances);
  const JobResult job = corpus.run({}, "u.csv", "u.h5", Update::append);
  INFO(job.text());
  REQUIRE(job.complete());
  CHECK(rows_by_name(corpus.path("u.h5")) == corpus.expected(utterances));
  CHECK(job.stage("files.utterances").items_out >= utterances.size() - some.size());
  CHECK(job.stage("files.utterances").items_out < some.size());  // one may span two blocks
}

TEST_CASE("utterances: stores of audio keep recordings") {
  Corpus corpus;
  const std::vector<Utterance> utterances = many(9);
  corpus.list("u.csv", utterances);
  const auto expected = corpus.expected(utterances);
  for (const char* feed : {"preload", "cache"})
    for (int round = 0; round < 2; ++round) {
      CAPTURE(feed);
      CAPTURE(round);
      Knobs k;
      k.list += fmt::format(", feed: {}, cache_path: \"{}\"", feed, corpus.path("store"));
      if (feed == std::string("preload")) k.list = k.list.substr(0, k.list.find(", cache_path"));
      const JobResult job = corpus.run(k, "u.csv", "u.h5");
      INFO(job.text());
      REQUIRE(job.complete());
      CHECK(rows_by_name(corpus.path("u.h5")) == expected);
    }
}

TEST_CASE("utterances: a list of Kaldi's is cut as by extract-segments") {
  Corpus corpus;
  write_audio(corpus.folder().file("data/st.wav"), audio_kind("wav s16 stereo"), kRate,
              test_signal(2 * kRate, 2));
  corpus.folder().write("data/k/wav.scp", "r short.wav\nst st.wav\n");
  corpus.folder().write("data/k/segments",
                        "u1 r 2.01 4.02\nu2 r 2 2.1\nu3 r 2 2.1001\nu4 r 5.7 6.4\nu5 r 5.7 6.5\n"
                        "u6 r 5.95 6.2\nu7 st 0 1\nu8 st 0 1 1\nu9 r 7 8\n");
  const JobResult job = corpus.run({.list = "utterances: {}"}, "k", "k.h5");
  INFO(job.text());
  REQUIRE(job.complete());
  const std::string node = "files.utterances: ";
  const std::map<std::string, std::string> expected{
      {"short.wav#t=2,2.1",
       "skipped: " + node +
           "is 0.100 s long, and by the rule of Kaldi an utterance has more than "
           "0.1 s"},
      {"short.wav#t=5.7,6.4",
       "ok: " + node + "ends 0.400 s after the end of its recording: has the rest only"},
      {"short.wav#t=5.7,6.5",
       "failed: " + node +
           "ends 0.500 s after the end of its recording; by the rule of Kaldi it "
           "may be less than 0.5 s"},
      {"short.wav#t=5.95,6.2",
       "skipped: " + node +
           "is 0.050 s long, and by the rule of Kaldi an utterance has more than "
           "0.1 s"},
      {"short.wav#t=7,8",
       "failed: " + node + "begins at 7.000 s, but the recording is only 6.000 s long"},
      {"st.wav#t=0,1",
       "failed: " + node +
           "its recording has 2 channels, and Kaldi takes segments of one: write "
           "the channel (0, 1, ...) as the fifth word of a line of segments, or "
           "downmix in decode, or utterances: {rule: nearest} for the mean of all"}};
  CHECK(job.remarks_by_name() == expected);
  CHECK(job.report.counts.ok == 4);
  // 2.01 s is sample 32159.999...
  corpus.folder().write("data/samples.csv", "path,start,end\nshort.wav,32159,64319\n");
  REQUIRE(corpus.run({.list = "utterances: {unit: samples}"}, "samples.csv", "s.h5").complete());
  CHECK(rows_by_name(corpus.path("k.h5")).at("short.wav#t=2.01,4.02") ==
        rows_by_name(corpus.path("s.h5")).at("short.wav#samples=32159,64319"));
  // A channel is chosen by downmix, too.
  const JobResult left =
      corpus.run({.list = "utterances: {}", .decode = ", downmix: left"}, "k", "l.h5");
  CHECK(left.remarks_by_name().count("st.wav#t=0,1") == 0);
}

TEST_CASE("utterances: the rule is recorded, and an update does not mix two of them") {
  Corpus corpus;
  corpus.folder().write("data/k/wav.scp", "r short.wav\n");
  corpus.folder().write("data/k/segments", "u1 r 0.57 1.14\n");
  const Knobs nearest{.list = "utterances: {rule: nearest}"}, by_list{.list = "utterances: {}"};
  REQUIRE(corpus.run(nearest, "k", "n.h5").complete());
  REQUIRE(corpus.run(by_list, "k", "k.h5").complete());
  const auto settings = [&](const std::string& name) {
    return FeatureFile(corpus.path(name)).text("feature_settings");
  };
  // Outputs of versions without rules have the fingerprint of `nearest`.
  CHECK(settings("n.h5").find("utterances") == std::string::npos);
  CHECK(settings("k.h5").find(R"({"stage": "utterances", "rule": "kaldi"})") != std::string::npos);
  CHECK(FeatureFile(corpus.path("k.h5")).text("config").find(R"("rule": "kaldi")") !=
        std::string::npos);
  corpus.folder().write("data/k/segments", "u1 r 0.57 1.14\nu2 r 2 3\n");
  CHECK(
      corpus.run(by_list, "k", "n.h5", Update::append).error ==
      corpus.path("n.h5") +
          ": its utterances were cut by the rule nearest, and by this pipeline they are by kaldi, "
          "which gives other samples, so that it cannot be updated; write utterances: {rule: "
          "nearest} to go on as it was made, or rebuild it with overwrite: true");
  CHECK(corpus.run(nearest, "k", "k.h5", Update::append).error.find("{rule: kaldi} to go on") !=
        std::string::npos);
  CHECK(corpus.run(nearest, "k", "n.h5", Update::append).complete());
  CHECK(corpus.run(by_list, "k", "k.h5", Update::append).complete());
}

TEST_CASE("utterances: a stored configuration without a rule is of a version that had none") {
  Corpus corpus;
  corpus.folder().write("data/k/wav.scp", "r short.wav\n");
  const auto rule_of = [&](const std::string& options, bool is_stored) {
    LoadOptions load = in_out(corpus.path("data"), corpus.path("u.h5"));
    load.has_all_options = is_stored;
    const Knobs knobs{.list = "utterances: " + options};
    const std::string config =
        to_json(load_plan_text(pipeline(knobs, "k", "decode"), "t.yaml", load).settings.config);
    const std::string key = R"("rule": ")";
    const std::size_t at = config.find(key) + key.size();
    return config.substr(at, config.find('"', at) - at);
  };
  CHECK(rule_of("{}", false) == "kaldi");
  CHECK(rule_of("{}", true) == "nearest");
  CHECK(rule_of("{rule: lhotse}", true) == "lhotse");
  CHECK(rule_of("{unit: samples}", false) == "nearest");
}

TEST_CASE("utterances: lists of several kinds need a rule") {
  Corpus corpus;
  corpus.folder().write("data/k/wav.scp", "r short.wav\n");
  corpus.list("u.csv", {{"short.wav", 1, 2, ""}});
  const std::string lists =
      "manifest: {train: \"${DATA}/k\", test: \"${DATA}/u.csv\"}, utterances: ";
  const auto run = [&](const std::string& options) {
    std::string yaml = pipeline({.list = "exclude: []"}, "u.csv", "decode");
    const std::string list = "manifest: \"${DATA}/u.csv\", exclude: []";
    yaml.replace(yaml.find(list), list.size(), lists + options);
    return run_job(yaml, in_out(corpus.path("data"), corpus.path("u.h5")));
  };
  CHECK_THROWS_WITH_AS(static_cast<void>(run("{}")),
                       doctest::Contains("the lists are of several kinds"), ConfigError);
  CHECK(run("{rule: nearest}").complete());
}

TEST_CASE("utterances: Lhotse's start and duration are rounded, each by itself") {
  Corpus corpus;
  const std::string recording =
      R"({"id": "r", "sources": [{"type": "file", "channels": [0], "source": "short.wav"}], )"
      R"("sampling_rate": 16000, "num_samples": 96000, "duration": 6.0, "channel_ids": [0]})";
  const auto cut = [&](const char* id, double start, double duration) {
    return fmt::format(R"({{"id": "{}", "start": {}, "duration": {}, "channel": 0, "custom": )"
                       R"({{"snr": NaN}}, "supervisions": [], "recording": {}, "type": "MonoCut"}})"
                       "\n",
                       id, start, duration, recording);
  };
  // 1.00003125 s are 16000.5 samples, and so are 1.0000625 s 16001.
  corpus.folder().write("data/cuts.jsonl", cut("a", 1.00003125, 1.00003125));
  corpus.folder().write("data/samples.csv", "path,start,end\nshort.wav,16001,32002\n");
  REQUIRE(corpus.run({.list = "utterances: {}"}, "cuts.jsonl", "c.h5").complete());
  REQUIRE(corpus.run({.list = "utterances: {unit: samples}"}, "samples.csv", "s.h5").complete());
  CHECK(rows_by_name(corpus.path("c.h5")).begin()->second ==
        rows_by_name(corpus.path("s.h5")).begin()->second);
}

TEST_CASE("utterances: a recording of another length than its list says is told") {
  Corpus corpus;
  const auto recording = [](double duration) {
    return fmt::format(
        R"({{"id": "r", "sources": [{{"type": "file", "channels": [0], "source": "short.wav"}}], )"
        R"("sampling_rate": 16000, "num_samples": 96000, "duration": {}, "channel_ids": [0]}})",
        duration);
  };
  const auto remarks = [&](const std::string& line, const std::string& list) {
    corpus.folder().write("data/l.jsonl", line + "\n");
    const JobResult job = corpus.run({.list = list}, "l.jsonl", "l.h5");
    REQUIRE(job.complete());
    return job.remarks_by_name();
  };
  const auto cut = [&](double duration, double of, double start = 0) {
    return fmt::format(R"({{"id": "c", "start": {}, "duration": {}, "channel": 0, )"
                       R"("supervisions": [], "recording": {}, "type": "MonoCut"}})",
                       start, duration, recording(of));
  };
  const std::string is =
      "ok: decode: its list says that it is 8.000 s long, and it is 6.000 s: "
      "another version of the file?";
  using Remarks = std::map<std::string, std::string>;
  CHECK(remarks(recording(8), "exclude: []") == Remarks{{"short.wav", is}});
  CHECK(remarks(cut(8, 8), "utterances: {}") == Remarks{{"short.wav#t=0", is}});
  CHECK(remarks(cut(3, 8), "utterances: {}") == Remarks{{"short.wav#t=0,3", is}});
  CHECK(remarks(recording(4), "exclude: []").size() == 1);
  CHECK(remarks(recording(6.024), "exclude: []").empty());
  // With what else is told of it. No samples are made up, as Lhotse does.
  CHECK(remarks(cut(2, 8, 4.5), "utterances: {}") ==
        Remarks{{"short.wav#t=4.5,6.5",
                 is + "; files.utterances: ends 0.500 s after the end of its recording: has the "
                      "rest only"}});

  // Whichever cut of the recording says it, and whatever its other cuts say.
  for (const auto& [first, second] : {std::pair{8, 6}, {6, 8}, {8, 8}})
    CHECK(remarks(cut(1, first, 1) + "\n" + cut(1, second, 3), "utterances: {}") ==
          Remarks{{"short.wav#t=3,4", is}});

  const auto nemo = [](const std::string& more) {
    return R"({"audio_filepath": "short.wav", "duration": 8)" + more + "}";
  };
  CHECK(remarks(nemo(""), "exclude: []") == Remarks{{"short.wav", is}});
  CHECK(remarks(nemo(R"(, "offset": 0)"), "exclude: []") == Remarks{{"short.wav", is}});
  CHECK(remarks(nemo(R"(, "offset": 1)"), "exclude: []").empty());  // that of a part
  // Whichever line comes first.
  const std::string part = R"({"audio_filepath": "sub/mono.flac", "duration": 0.5, "offset": 1})";
  CHECK(remarks(nemo("") + "\n" + part, "exclude: []") == Remarks{{"short.wav", is}});
  CHECK(remarks(part + "\n" + nemo(""), "exclude: []") == Remarks{{"short.wav", is}});
  CHECK(remarks(R"({"path": "short.wav", "duration": 8})", "exclude: []").empty());  // in any unit
  CHECK(remarks(nemo(R"(, "offset": 0)"), "utterances: {}") ==
        Remarks{{"short.wav#t=0,8",
                 "ok: files.utterances: ends 2.000 s after the end of its recording: has the rest "
                 "only"}});

  const auto of_kaldi = [&](const std::string& list) {
    const JobResult job = corpus.run({.list = list}, "k", "k.h5");
    REQUIRE(job.complete());
    return job.remarks_by_name();
  };
  corpus.folder().write("data/k/wav.scp", "r short.wav\ns sub/mono.flac\n");
  corpus.folder().write("data/k/utt2dur", "r 8\ns 20.0\n");
  CHECK(of_kaldi("exclude: []") == Remarks{{"short.wav", is}});
  corpus.folder().write("data/k/reco2dur", "r 6.01\ns 20.0\n");
  CHECK(of_kaldi("exclude: []").empty());
  corpus.folder().write("data/k/segments", "u1 r 0 1\nu2 r 1 2\nu3 s 1 2\n");
  corpus.folder().write("data/k/reco2dur", "r 8\ns 20.0\n");
  CHECK(of_kaldi("utterances: {}") == Remarks{{"short.wav#t=1,2", is}});  // of the last one
}

TEST_CASE("utterances: a recording of another rate than its list says is told") {
  Corpus corpus;
  const auto recording = [](int rate, double duration = 6) {
    return fmt::format(
        R"({{"id": "r", "sources": [{{"type": "file", "channels": [0], "source": "short.wav"}}], )"
        R"("sampling_rate": {}, "num_samples": 96000, "duration": {}, "channel_ids": [0]}})",
        rate, duration);
  };
  const auto cut = [&](int rate, double start) {
    return fmt::format(R"({{"id": "c", "start": {}, "duration": 1, "channel": 0, )"
                       R"("supervisions": [], "recording": {}, "type": "MonoCut"}})",
                       start, recording(rate));
  };
  const auto run = [&](const std::string& line, const Knobs& graph) {
    corpus.folder().write("data/l.jsonl", line + "\n");
    JobResult job = corpus.run(graph, "l.jsonl", "l.h5");
    REQUIRE(job.complete());
    return job;
  };
  const std::string is =
      "its list says that its rate is 8000 Hz, and the file's is 16000 Hz, which is used: another "
      "version of the file?";
  using Remarks = std::map<std::string, std::string>;
  const auto remarks = [&](const std::string& line, const std::string& list) {
    return run(line, {.list = list}).remarks_by_name();
  };
  CHECK(remarks(recording(8000), "exclude: []") == Remarks{{"short.wav", "ok: decode: " + is}});
  CHECK(remarks(recording(16000), "exclude: []").empty());
  CHECK(remarks(cut(8000, 1), "utterances: {}") ==
        Remarks{{"short.wav#t=1,2", "ok: decode: " + is}});
  CHECK(remarks(cut(8000, 1) + "\n" + cut(16000, 3), "utterances: {}") ==
        Remarks{{"short.wav#t=3,4", "ok: decode: " + is}});
  CHECK(remarks(recording(8000, 8), "exclude: []") ==
        Remarks{{"short.wav",
                 "ok: decode: its list says that it is 8.000 s long, and it is 6.000 s: another "
                 "version of the file?; " +
                     is}});
  // Seconds are those of the file: the list's rate does not move the utterance.
  run(cut(16000, 1), {.list = "utterances: {}"});
  const auto rows = rows_by_name(corpus.path("l.h5"));
  run(cut(8000, 1), {.list = "utterances: {}"});
  CHECK(rows_by_name(corpus.path("l.h5")) == rows);
}

TEST_CASE("utterances: a manifest that makes no sense is refused with its line") {
  Corpus corpus;
  const auto error = [&](const std::string& name, const std::string& text,
                         const std::string& list = "utterances: {}") {
    corpus.folder().write("data/" + name, text);
    return corpus.run({.list = list}, name, "u.h5").error;
  };
  const std::string csv = corpus.path("data/u.csv");
  CHECK(error("u.csv", "path,start,end\nshort.wav,x,2\n") ==
        csv + ":2: start is 'x', which is not a number from 0 up");
  CHECK(error("u.csv", "path,start,end\nshort.wav,-1,2\n") ==
        csv + ":2: start is '-1', which is not a number from 0 up");
  CHECK(
      error("u.csv", "path,start,end\nshort.wav,2,2\n") ==
      csv +
          ":2: the utterance ends at 2, and starts at 2; an empty end is the end of the recording");
  CHECK(error("u.csv", "path,start,duration\nshort.wav,2,0\n") ==
        csv +
            ":2: the utterance ends at 2, and starts at 2; an empty duration is the end of the "
            "recording");
  const std::string more =
      "; name another by columns_are: {start: COLUMN, end: COLUMN}, or duration in place of end; "
      "where each line is a whole recording, omit utterances";
  CHECK(error("u.csv", "path,from,end\nshort.wav,2,3\n") ==
        csv + ": there is no column 'start', which utterances needs; it has path, from, end" +
            more);
  CHECK(error("u.csv", "path,start,length\nshort.wav,2,3\n") ==
        csv +
            ": there is no column 'end' or 'duration', which utterances needs; it has path, start, "
            "length" +
            more);
  CHECK(error("u.csv", "path,start,length\nshort.wav,2,3\n",
              "utterances: {}, columns_are: {end: to}") ==
        csv +
            ": there is no column 'to', which columns_are.end asks for; it has path, start, "
            "length");
}

TEST_CASE("utterances: a bad line fails alone, and those of its recording are whole") {
  Corpus corpus;
  const std::string good = "path,start,end\nshort.wav,1,2\nshort.wav,2,3\nlong.wav,0,1\n";
  corpus.folder().write("data/good.csv", good);
  REQUIRE(corpus.run({.list = "utterances: {}"}, "good.csv", "good.h5").complete());
  const auto expected = rows_by_name(corpus.path("good.h5"));
  corpus.folder().write("data/u.csv",
                        "path,start,end\nshort.wav,1,2\nshort.wav,x,2\nlong.wav\n"
                        "short.wav,2,3\nshort.wav,9,8\nlong.wav,0,1\n");
  const JobResult job = corpus.run({.list = "utterances: {}"}, "u.csv", "u.h5");
  INFO(job.text());
  CHECK(job.error.empty());
  const std::string csv = corpus.path("data/u.csv");
  CHECK(job.report.warnings ==
        std::vector<std::string>{csv + ": 3 of 6 lines cannot be used and fail alone; the first: " +
                                 csv + ":3: start is 'x', which is not a number from 0 up"});
  std::map<std::string, decltype(expected)::mapped_type> rows;
  for (auto& [name, of_file] : rows_by_name(corpus.path("u.h5")))
    if (!of_file.empty()) rows[name] = of_file;
  CHECK(rows == expected);
  const std::string failed = "failed: read: " + csv;
  CHECK(
      job.remarks_by_name() ==
      std::map<std::string, std::string>{
          {csv + ":3#t=0", failed + ":3: start is 'x', which is not a number from 0 up"},
          {csv + ":4#t=0", failed + ":4: 1 cell, but the header has 3; put a cell with commas in "
                                    "quotes, and keep the comma of an empty cell"},
          {csv + ":6#t=0", failed + ":6: the utterance ends at 8, and starts at 9; an empty end is "
                                    "the end of the recording"}});
}

TEST_CASE("utterances: columns that name parts of recordings are not passed over in silence") {
  Corpus corpus;
  corpus.list("u.csv", {{"short.wav", 1, 2, "a"}});
  const auto warnings = [&](const std::string& list) {
    return corpus.run({.list = list}, "u.csv", "u.h5").report.warnings;
  };
  const std::string csv = corpus.path("data/u.csv");
  CHECK(warnings("labels: manifest") ==
        std::vector<std::string>{
            csv +
            ": columns not used: start, end; for parts of recordings write utterances: {}, and "
            "columns_are where these are not start and end"});
  CHECK(warnings("labels: manifest, utterances: {}") == std::vector<std::string>{});
}

TEST_CASE("utterances: an update by content knows all of a recording's by its bytes") {
  Corpus corpus;
  corpus.list("u.csv",
              {{"short.wav", 1, 2, "a"}, {"short.wav", 3, 4, "a"}, {"long.wav", 3, 4, "b"}});
  Knobs k;
  k.list += ", update_by: content";
  REQUIRE(corpus.run(k, "u.csv", "u.h5").complete());
  const FeatureFile file(corpus.path("u.h5"));
  CHECK(file.files()[0].content != 0);
  CHECK(file.files()[0].content == file.files()[1].content);
  CHECK(file.files()[2].content != file.files()[0].content);
}

TEST_CASE("utterances: where they cannot be cut out is said before the run") {
  Corpus corpus;
  corpus.list("u.csv", {{"short.wav", 1, 2, "a"}});
  const auto problem = [&](const Knobs& k, const std::string& manifest = "u.csv") {
    try {
      return corpus.run(k, manifest, "u.h5").error;
    } catch (const ConfigError& e) {
      return std::string(e.what());
    }
  };
  const auto has = [](const std::string& text, const std::string& part) {
    return text.find(part) != text.npos;
  };
  CHECK(has(problem({}, "u.txt"), "needs a manifest with the columns path, start and end"));
  CHECK(has(problem({.list = "utterances: {}, columns_are: {end: e, duration: d}"}),
            "end and duration are both given; remove one"));
  Knobs k;
  k.nodes = "  last: {stage: trim_silence, from: decode, threshold: -40dB}\n";
  CHECK(has(problem(k), "would move the places of utterances"));
  k = {};
  k.decode = ", fit: 3s";
  CHECK(has(problem(k), "fit: cuts recordings"));
  k = {};
  k.filter = "label: a";
  CHECK(has(problem(k),
            "label is that of an utterance, but this node takes whole recordings; put it after the "
            "last node that gives samples (decode, resample, ...), where utterances are cut"));
  k.filter = "path: \"*short*\"";
  CHECK(problem(k) == "");
  k = {};
  k.nodes =
      "  one: {stage: route, from: decode, outputs: {a: {label: a}}}\n"
      "  last: {stage: filter, from: one.a, where: {duration: \"> 0.5s\"}}\n";
  CHECK(problem(k) == "");
  k.nodes = "  last: {stage: utterances, from: decode}\n";
  CHECK(has(problem(k), "is put there by a source with the option utterances; remove it"));
}

}  // namespace melflow::test::utterances_test
