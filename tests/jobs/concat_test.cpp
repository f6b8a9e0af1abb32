// concat in whole runs: its rows are those of its inputs, side by side, bit for bit, whatever the
// blocks, the memory and the number of workers are.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <map>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "stages/output/formats/feature_file.h"
#include "tests/support/audio_files.h"
#include "tests/support/job.h"
#include "tests/support/temp_folder.h"

namespace melflow::test::concat_test {
namespace {

struct Knobs {
  int workers = 2, batch = 3;
  std::string memory = "256MiB", block = "2MiB", whole = "4MiB";

  [[nodiscard]] std::string text() const {
    return fmt::format("workers {}, batch {}, memory {}, block {}, whole {}", workers, batch,
                       memory, block, whole);
  }
};

// A few short recordings, one of many blocks, and a file that is no recording.
class Corpus {
 public:
  Corpus() {
    for (unsigned i = 0; i < 9; ++i)
      write_wav(folder_.file(fmt::format("clips/{}.wav", i)), 3000 + 1777 * i, 8000, i);
    write_audio(folder_.file("clips/long.flac"), audio_kind("flac s16"), 8000,
                test_signal(700'001));
    folder_.write("clips/x.wav", "no sound");
    folder_.write("parts.csv",
                  "path,start,end\nlong.flac,0,31.5\nlong.flac,30,\n3.wav,0.1,0.6\n3.wav,0.5,\n");
  }
  [[nodiscard]] std::string path(const std::string& name) const { return folder_ / name; }

  // `nodes`: lines after decode.
  JobResult run(const std::string& nodes, const Knobs& k = {}, const std::string& list = "",
                Update update = Update::none) const {
    return run_job(fmt::format(R"(version: 1
workers: {}
memory: {{host: {}}}
graph:
  files: {{stage: file_list, root: "${{DATA}}"{}}}
  read: {{stage: disk_read, from: files, whole: {}}}
  decode: {{stage: decode, from: read, block: {}}}
{})",
                               k.workers, k.memory, list, k.whole, k.block, nodes),
                   in_out(path("clips"), folder_.path()), {}, update);
  }

  static std::string write(const std::string& from, const std::string& name) {
    return fmt::format("  w_{}: {{stage: {}, from: {}, path: \"${{OUT}}/{}\", overwrite: true}}\n",
                       name.substr(0, name.find('.')),
                       name.ends_with(".npy") ? "npy_write" : "hdf5_write", from, name);
  }

 private:
  TempFolder folder_;
};

// Returns the rows of each file that has some, [rows, values].
std::map<std::string, std::vector<float>> rows_of(const std::string& path, std::size_t* values) {
  const FeatureFile file(path);
  std::map<std::string, std::vector<float>> out;
  for (const FeatureFile::Entry& e : file.files()) {
    if (e.count == 0) continue;
    auto& rows = out[e.path];
    rows =
        file.read_rows(static_cast<std::uint64_t>(e.offset), static_cast<std::uint64_t>(e.count));
    *values = rows.size() / static_cast<std::size_t>(e.count);
  }
  return out;
}

// Joins the rows of `outputs` side by side, frame by frame; `frames`: per row.
std::map<std::string, std::vector<float>> beside(const Corpus& corpus,
                                                 const std::vector<std::string>& outputs,
                                                 std::size_t frames) {
  std::vector<std::map<std::string, std::vector<float>>> all;
  std::vector<std::size_t> columns;
  for (const std::string& o : outputs) {
    std::size_t values = 0;
    all.push_back(rows_of(corpus.path(o), &values));
    columns.push_back(values / frames);
  }
  std::map<std::string, std::vector<float>> out;
  for (const auto& [name, first] : all.front())
    for (std::size_t f = 0; f < first.size() / columns.front(); ++f)
      for (std::size_t k = 0; k < all.size(); ++k) {
        const auto from = all[k].at(name).begin() + static_cast<std::ptrdiff_t>(f * columns[k]);
        out[name].insert(out[name].end(), from, from + static_cast<std::ptrdiff_t>(columns[k]));
      }
  return out;
}

const Knobs kAll[] = {{},
                      {1, 1, "256MiB", "64KiB", "64KiB"},
                      {4, 5, "16MiB", "64KiB", "64KiB"},
                      {3, 2, "64MiB", "128KiB", "64KiB"}};

// Kinds of rows: from other windows, incomplete until a recording ends, and computed from others.
const std::string kFrames = R"(  s: {stage: segment, from: decode}
  b: {stage: batch, from: s, files: 3}
  mel: {stage: mel, from: b, sample_rate: 8000, n_fft: 256, hop: 80, n_mels: 20, log: db, top_db: 30}
  mfcc: {stage: mfcc, from: mel, n_mfcc: 7}
  deltas: {stage: deltas, from: mfcc, order: 1}
  b2: {stage: batch, from: s, files: 2}
  wide: {stage: mel, from: b2, sample_rate: 8000, n_fft: 2048, hop: 80, n_mels: 16, log: ln}
  all: {stage: concat, from: [wide, deltas, mel]}
)";
const std::string kWindows =
    R"(  s: {stage: segment, from: decode, length: 4000, hop: 1500, tail: pad}
  b: {stage: batch, from: s, files: 3}
  mel: {stage: mel, from: b, sample_rate: 8000, n_fft: 256, hop: 80, n_mels: 20, log: db}
  mfcc: {stage: mfcc, from: mel, n_mfcc: 7}
  wide: {stage: mel, from: b, sample_rate: 8000, n_fft: 1024, hop: 80, n_mels: 16, normalize: per_feature}
  all: {stage: concat, from: [mfcc, wide, mel]}
)";

std::string error_of(const Corpus& corpus, const std::string& nodes) {
  try {
    corpus.run(nodes + Corpus::write("all", "all.h5"));
  } catch (const ConfigError& e) {
    return e.what();
  }
  return "none";
}

}  // namespace

TEST_CASE("concat: rows of frames are those of its inputs side by side, at any bounds") {
  const Corpus corpus;
  const std::string outputs = Corpus::write("wide", "wide.h5") +
                              Corpus::write("deltas", "deltas.h5") + Corpus::write("mel", "mel.h5");
  REQUIRE(corpus.run(kFrames + outputs + Corpus::write("all", "all.h5")).complete());
  const auto expected = beside(corpus, {"wide.h5", "deltas.h5", "mel.h5"}, 1);
  CHECK(expected.size() == 10);
  std::size_t values = 0;
  CHECK(rows_of(corpus.path("all.h5"), &values) == expected);
  CHECK(values == 16 + 14 + 20);
  std::string bytes;
  for (const Knobs& k : kAll) {
    CAPTURE(k.text());
    const JobResult job = completed(
        corpus.run(kFrames + Corpus::write("all", "one.h5") + Corpus::write("all", "two.npy"), k));
    CHECK(rows_of(corpus.path("one.h5"), &values) == expected);
    CHECK(rows_of(corpus.path("two.npy"), &values) == expected);
    const std::string rows = read_bytes(corpus.path("two.npy"));
    if (bytes.empty()) bytes = rows;
    CHECK(rows == bytes);
    CHECK(job.report.memory_peak <= job.report.memory_budget);
  }
}

TEST_CASE("concat: rows of windows are put side by side frame by frame") {
  const Corpus corpus;
  const std::string outputs = Corpus::write("mfcc", "mfcc.h5") + Corpus::write("wide", "wide.h5") +
                              Corpus::write("mel", "mel.h5");
  REQUIRE(corpus.run(kWindows + outputs + Corpus::write("all", "all.h5")).complete());
  const auto expected = beside(corpus, {"mfcc.h5", "wide.h5", "mel.h5"}, 51);
  CHECK(expected.size() == 10);
  for (const Knobs& k : kAll) {
    CAPTURE(k.text());
    completed(corpus.run(kWindows + Corpus::write("all", "one.h5"), k));
    std::size_t values = 0;
    CHECK(rows_of(corpus.path("one.h5"), &values) == expected);
    CHECK(values == 51 * (7 + 16 + 20));
  }
}

TEST_CASE("concat: utterances of recordings") {
  const Corpus corpus;
  const std::string list =
      fmt::format(", manifest: \"{}\", utterances: {{}}", corpus.path("parts.csv"));
  const std::string outputs = Corpus::write("wide", "wide.h5") +
                              Corpus::write("deltas", "deltas.h5") + Corpus::write("mel", "mel.h5");
  REQUIRE(corpus.run(kFrames + outputs + Corpus::write("all", "all.h5"), {}, list).complete());
  const auto expected = beside(corpus, {"wide.h5", "deltas.h5", "mel.h5"}, 1);
  CHECK(expected.size() == 4);
  for (const Knobs& k : kAll) {
    CAPTURE(k.text());
    completed(corpus.run(kFrames + Corpus::write("all", "one.h5"), k, list));
    std::size_t values = 0;
    CHECK(rows_of(corpus.path("one.h5"), &values) == expected);
  }
}

TEST_CASE(
    "concat: the output says which columns are whose, and its fingerprint knows their order") {
  const Corpus corpus;
  const std::string swapped = [] {
    std::string out = kFrames;
    return out.replace(out.find("[wide, deltas, mel]"), 19, "[deltas, wide, mel]");
  }();
  REQUIRE(corpus.run(kFrames + Corpus::write("all", "a.h5")).complete());
  REQUIRE(corpus.run(swapped + Corpus::write("all", "b.h5")).complete());
  const FeatureFile a(corpus.path("a.h5")), b(corpus.path("b.h5"));
  CHECK(a.text("rows") == "features");
  CHECK(a.text("feature_fingerprint") != b.text("feature_fingerprint"));
  CHECK(nlohmann::json::parse(a.text("column_groups")) == nlohmann::json::parse(R"([
    {"node": "wide", "rows": "mel", "unit": "ln power", "columns": 16},
    {"node": "deltas", "rows": "mfcc", "unit": "cepstrum of dB, with derivatives", "columns": 14},
    {"node": "mel", "rows": "mel", "unit": "dB", "columns": 20}])"));
  const auto settings = nlohmann::json::parse(a.text("feature_settings"));
  std::vector<std::string> last;
  for (const auto& stage : settings)
    if (stage["stage"] == "concat")
      for (const auto& way : stage["inputs"]) last.push_back(way.back()["stage"]);
  CHECK(last == std::vector<std::string>{"mel", "deltas", "mel"});
}

TEST_CASE("concat: a file whose inputs give other numbers of rows fails and says how many") {
  const Corpus corpus;
  const std::string nodes = R"(  s: {stage: segment, from: decode}
  b: {stage: batch, from: s}
  mel: {stage: mel, from: b, sample_rate: 8000, n_fft: 256, hop: 80, n_mels: 20}
  cut: {stage: trim_silence, from: decode, threshold: -20dB, keep: 0}
  s2: {stage: segment, from: cut}
  b2: {stage: batch, from: s2}
  other: {stage: mel, from: b2, sample_rate: 8000, n_fft: 256, hop: 80, n_mels: 10}
  all: {stage: concat, from: [mel, other]}
)" + Corpus::write("all", "all.h5");
  // Silence starts at sample 8000 of b. The frame of 2048 samples that begins at 7168 contains some
  // of it: 9216 samples stay, and a frame begins at every 80th.
  const TempFolder folder;
  std::vector<float> sound(16000, 0.5F);
  for (std::size_t i = 1; i < sound.size(); i += 2) sound[i] = -0.5F;
  write_audio(folder.file("clips/a.wav"), audio_kind("wav float"), 8000, sound);
  std::fill(sound.begin() + 8000, sound.end(), 0.0F);
  write_audio(folder.file("clips/b.wav"), audio_kind("wav float"), 8000, sound);
  const JobResult job = completed(run_job(fmt::format(R"(version: 1
graph:
  files: {{stage: file_list, root: "${{DATA}}"}}
  read: {{stage: disk_read, from: files}}
  decode: {{stage: decode, from: read}}
{})",
                                                      nodes),
                                          in_out(folder / "clips", folder.path())));
  CHECK(job.remarks_by_name().at("b.wav") ==
        "failed: all: its rows do not fit side by side: mel gives 201 rows, other 116");
  CHECK(job.remarks_by_name().size() == 1);
  std::size_t values = 0;
  const auto rows = rows_of(folder / "all.h5", &values);
  CHECK(rows.size() == 1);
  CHECK(rows.at("a.wav").size() == 201 * 30);
}

TEST_CASE(
    "concat: what an input cannot make fails the file, or with on_failure this output alone") {
  const Corpus corpus;
  const auto nodes = [](const std::string& failure) {
    return fmt::format(R"(  s: {{stage: segment, from: decode}}
  b: {{stage: batch, from: s}}
  mel: {{stage: mel, from: b, sample_rate: 8000, n_fft: 256, hop: 80, n_mels: 20, log: db}}
  few: {{stage: segment, from: decode, max_length: 1s{}}}
  b2: {{stage: batch, from: few}}
  other: {{stage: mel, from: b2, sample_rate: 8000, n_fft: 256, hop: 80, n_mels: 10, log: db}}
  all: {{stage: concat, from: [mel, other]}}
)",
                       failure) +
           Corpus::write("all", "all.h5") + Corpus::write("mel", "mel.h5");
  };
  std::size_t values = 0;
  for (const bool is_branch : {false, true}) {
    CAPTURE(is_branch);
    const JobResult job = completed(corpus.run(nodes(is_branch ? ", on_failure: branch" : "")));
    // 3000 + 1777 i samples are at most 8000 up to i = 2.
    CHECK(rows_of(corpus.path("all.h5"), &values).size() == 3);
    CHECK(rows_of(corpus.path("mel.h5"), &values).size() == (is_branch ? 10 : 3));
    CHECK(job.report.counts.skipped == (is_branch ? 0 : 7));
  }
}

TEST_CASE(
    "concat: an update computes what is new, and a filter before one input leaves files out") {
  const Corpus corpus;
  const std::string nodes = kFrames + Corpus::write("all", "all.h5");
  REQUIRE(corpus.run(nodes, {}, ", exclude: [1.wav, 2.wav, 3.wav, 4.wav]").complete());
  const JobResult job = completed(corpus.run(nodes, {}, "", Update::append));
  CHECK(job.stage("decode").files_in == 5);  // including the file that is no recording
  std::size_t values = 0;
  const auto updated = rows_of(corpus.path("all.h5"), &values);
  REQUIRE(corpus.run(nodes).complete());
  CHECK(updated == rows_of(corpus.path("all.h5"), &values));

  const std::string filtered = R"(  s: {stage: segment, from: decode}
  b: {stage: batch, from: s}
  mel: {stage: mel, from: b, sample_rate: 8000, n_fft: 256, hop: 80, n_mels: 20}
  some: {stage: filter, from: decode, where: {duration: "< 1s"}}
  s2: {stage: segment, from: some}
  b2: {stage: batch, from: s2}
  other: {stage: mel, from: b2, sample_rate: 8000, n_fft: 256, hop: 80, n_mels: 10}
  all: {stage: concat, from: [mel, other]}
)" + Corpus::write("all", "all.h5");
  for (const Knobs& k : kAll) {
    CAPTURE(k.text());
    const JobResult some = completed(corpus.run(filtered, k));
    CHECK(rows_of(corpus.path("all.h5"), &values).size() == 3);
    CHECK(some.remarks_by_name().at("long.flac").starts_with("skipped: some: duration is"));
  }
}

TEST_CASE("concat: what cannot stand side by side is refused before the run") {
  const Corpus corpus;
  const auto mels = [](const std::string& a, const std::string& b,
                       const std::string& segment = "") {
    return fmt::format(R"(  s: {{stage: segment, from: decode{}}}
  b: {{stage: batch, from: s}}
  mel: {{stage: mel, from: b, sample_rate: 8000, n_mels: 20, {}}}
  other: {{stage: mel, from: b, sample_rate: 8000, n_mels: 10, {}}}
  all: {{stage: concat, from: [mel, other]}}
)",
                       segment, a, b);
  };
  struct Row {
    std::string nodes, message;
  };
  const Row rows[] = {
      {mels("n_fft: 256, hop: 80", "n_fft: 256, hop: 100"),
       "test.yaml:12:30: all.from: frames of mel start every 10 ms, those of other every 12.5 ms; "
       "give them the same hop"},
      {mels("n_fft: 256, hop: 80", "n_fft: 512, hop: 80, center: false"),
       "test.yaml:12:30: all.from: of 8192 samples mel makes 103 frames, other makes 97; give them "
       "frames of the same kind (center, or n_fft and win_length)"},
      {mels("n_fft: 256, hop: 80", "n_fft: 512, hop: 80, center: false", ", length: 4000"),
       "test.yaml:12:30: all.from: a row of mel has 51 frames, one of other has 44; give them the "
       "same hop, and frames of the same kind (center, or n_fft and win_length)"}};
  for (const Row& row : rows) {
    CAPTURE(row.nodes);
    CHECK(error_of(corpus, row.nodes) == row.message);
  }
}

TEST_CASE("concat: steps behind it see all columns, in blocks as in one piece") {
  const Corpus corpus;
  const std::string nodes = kFrames + "  slopes: {stage: deltas, from: all, order: 1}\n" +
                            Corpus::write("slopes", "slopes.npy");
  std::string bytes;
  for (const Knobs& k : kAll) {
    CAPTURE(k.text());
    completed(corpus.run(nodes, k));
    const std::string rows = read_bytes(corpus.path("slopes.npy"));
    if (bytes.empty()) bytes = rows;
    CHECK(rows == bytes);
  }
  std::size_t values = 0;
  CHECK(rows_of(corpus.path("slopes.npy"), &values).size() == 10);
  CHECK(values == 2 * 50);
}

}  // namespace melflow::test::concat_test
