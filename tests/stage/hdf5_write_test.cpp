#include <doctest/doctest.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <set>

#include "stages/output/row_file.h"
#include "tests/support/documented.h"
#include "tests/support/h5_reader.h"
#include "tests/support/hold.h"
#include "tests/support/job.h"
#include "tests/support/printing.h"
#include "tests/support/python.h"
#include "tests/support/skip.h"
#include "tests/support/small_disk.h"
#include "tests/support/small_pipeline.h"
#include "tests/support/source_path.h"
#include "tests/support/temp_folder.h"

using namespace melflow;
using namespace melflow::test;

namespace {

struct Options {
  std::string files = "labels: parent_dir";
  std::string decode = "truncated: keep";
  std::string segment = "tail: drop";
  std::string mel = "log: db";
  std::string write = "overwrite: false";
  std::string top{};  ///< lines before the graph
};

std::string pipeline(const Options& o = {}) {
  return fmt::format(R"(version: 1
{}
graph:
{}  write: {{stage: hdf5_write, from: mel, path: "${{OUT}}", {}}}
)",
                     o.top, nodes_to_mel(o.files, o.decode, o.segment, o.mel), o.write);
}

JobResult run(const std::string& yaml, const TempFolder& folder,
              const std::string& out = "out.h5") {
  return run_job(yaml, in_out(folder / "clips", folder / out));
}

std::size_t files_in(const std::string& path) {
  return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(path), {}));
}

// What the Python script says about a file; "" when everything is right.
std::string check_output(const std::string& file, const std::string& other = "") {
  return python_says("stage/read_output.py",
                           "'" + file + "'" + (other.empty() ? "" : " '" + other + "'"));
}

}  // namespace

TEST_CASE("hdf5_write: everything in docs/output-format.md is there, with its type and shape") {
  const TempFolder folder;
  make_corpus(folder);
  struct Row {
    const char* what;
    Options options;
    std::size_t axes;
    std::string type;
  };
  const Row rows[] = {
      {"frames", {}, 2, "float32"},
      {"windows of one frame",
       {.segment = "length: 256", .mel = "center: false, log: db"},
       2,
       "float32"},
      {"windows of several frames", {.segment = "length: 1024"}, 3, "float32"},
      {"float16", {.write = "dtype: float16"}, 2, "float16"},
      {"bfloat16", {.write = "dtype: bfloat16"}, 2, "bfloat16"},
  };
  std::vector<std::string> expected_names{
      "band_hz",        "files",         "labels",       "labels/name",
      "mel",            "remarks",       "remarks/file", "remarks/path",
      "remarks/reason", "remarks/stage", "remarks/status", "splits",
      "splits/name"};
  for (const DocumentedColumn& c : documented_columns())
    if (!c.is_optional) expected_names.push_back(c.name);
  std::sort(expected_names.begin(), expected_names.end());
  CHECK(expected_names.size() >= 13 + 10);
  for (const Row& row : rows) {
    CAPTURE(std::string(row.what));
    const JobResult job = run(pipeline(row.options), folder);
    REQUIRE_MESSAGE(job.complete(), job.text());
    const H5File h5(folder / "out.h5");
    CHECK(h5.names() == expected_names);
    const std::uint64_t found = job.report.counts.found, bands = 20;
    const auto rows_written = h5.shape("mel").at(0);
    CHECK(h5.shape("mel").size() == row.axes);
    CHECK(h5.shape("mel").back() == bands);
    CHECK(h5.type("mel") == row.type);
    CHECK(h5.layout("mel") == "contiguous");
    CHECK(h5.shape("band_hz") == std::vector<std::uint64_t>{bands});
    CHECK(h5.axis_scale("mel", static_cast<unsigned>(row.axes - 1)) == "/band_hz");
    CHECK(h5.axis_label("mel", 0) == "row");
    CHECK(h5.axis_label("mel", static_cast<unsigned>(row.axes - 1)) == "band");
    if (row.axes == 3) CHECK(h5.axis_label("mel", 1) == "frame");
    const std::string status = "enum int8: ok=0 skipped=1 failed=2 not_run=3";
    std::vector<std::pair<std::string, std::string>> types{
        {"band_hz", "float64"},       {"labels/name", "string"},   {"splits/name", "string"},
        {"remarks/file", "int64"},    {"remarks/path", "string"},  {"remarks/status", status},
        {"remarks/stage", "string"},  {"remarks/reason", "string"}};
    for (const DocumentedColumn& c : documented_columns())
      if (!c.is_optional) types.emplace_back(c.name, c.name == "files/status" ? status : c.type);
    for (const auto& [name, type] : types) {
      CAPTURE(name);
      CHECK(h5.type(name) == type);
      if (name.starts_with("files/"))
        CHECK(h5.shape(name) == std::vector<std::uint64_t>{found});
    }
    CHECK(h5.attribute_names("/") ==
          std::vector<std::string>{"backend", "complete", "config", "failed", "feature_hash",
                                   "features", "format", "found", "hop_length", "instruction_set",
                                   "melflow_version", "n_fft", "not_run", "ok", "sample_rate",
                                   "skipped"});
    const std::pair<const char*, std::string> attributes[] = {{"melflow_version", "string"},
                                                              {"format", "int32"},
                                                              {"complete", "int8"},
                                                              {"found", "int64"},
                                                              {"ok", "int64"},
                                                              {"skipped", "int64"},
                                                              {"failed", "int64"},
                                                              {"not_run", "int64"},
                                                              {"config", "string"},
                                                              {"features", "string"},
                                                              {"feature_hash", "string"},
                                                              {"backend", "string"},
                                                              {"instruction_set", "string"},
                                                              {"sample_rate", "int32"},
                                                              {"n_fft", "int32"},
                                                              {"hop_length", "int32"}};
    for (const auto& [name, type] : attributes) {
      CAPTURE(std::string(name));
      CHECK(h5.attribute_type("/", name) == type);
    }
    CHECK(h5.attribute_names("files") == std::vector<std::string>{"root"});
    CHECK(h5.text_attribute("files", "root") == folder / "clips");
    CHECK(h5.text_attribute("mel", "unit") == "dB");
    CHECK(h5.integer_attribute("/", "complete") == 1);
    CHECK(h5.integer_attribute("/", "format") == 1);
    CHECK(h5.integer_attribute("/", "sample_rate") == kRate);
    CHECK(h5.integer_attribute("/", "n_fft") == 256);
    CHECK(h5.integer_attribute("/", "hop_length") == 128);
    CHECK(h5.text_attribute("/", "backend") == "cpu");
    CHECK(h5.text_attribute("/", "feature_hash").size() == 32);
    // Nothing of the documentation's names is missing here, and nothing here is missing there.
    const std::string text = read_bytes(source_path("docs/output-format.md"));
    for (const std::string& name : h5.names())
      if (name.find('/') != name.npos || name == "mel" || name == "band_hz")
        CHECK_MESSAGE(text.find("`/" + name + "`") != text.npos, name);
    for (const std::string& name : h5.attribute_names("/"))
      CHECK_MESSAGE(text.find("`" + name + "`") != text.npos, name);
    CHECK(rows_written > 0);
    CHECK(check_output(folder / "out.h5") == "");
    // The report says the same.
    for (const auto& [name, value] : job.stage("write").summary) {
      if (name == "path") CHECK(value.text() == folder / "out.h5");
      if (name == "rows") CHECK(value.text() == std::to_string(rows_written));
      if (name == "dtype") CHECK(value.text() == row.type);
      if (name == "shape") CHECK(value.items().size() == row.axes);
    }
    std::filesystem::remove(folder / "out.h5");
  }
}

TEST_CASE("hdf5_write: what stands in the index is what became of the files") {
  const TempFolder folder;
  make_corpus(folder);
  const JobResult job = run(pipeline({.mel = "center: false"}), folder);
  REQUIRE_MESSAGE(job.complete(), job.text());
  const Output out = read_output(folder / "out.h5");
  std::vector<std::string> paths;
  for (const Output::File& f : out.files) paths.push_back(f.path);
  CHECK(paths == std::vector<std::string>{"cat/3.wav", "cat/4.wav", "cat/5.wav", "cat/broken.wav",
                                          "cat/short.wav", "dog/0.wav", "dog/1.wav", "dog/2.wav",
                                          "dog/cut.wav", "dog/folder.wav", "top.wav"});
  CHECK(out.labels == std::vector<std::string>{"cat", "dog"});
  CHECK(out.splits.empty());
  std::int64_t offset = 0;
  for (const Output::File& f : out.files) {
    CAPTURE(f.path);
    CHECK(f.offset == offset);
    offset += f.count;
    CHECK(f.label == (f.path.starts_with("cat") ? 0 : f.path.starts_with("dog") ? 1 : -1));
    CHECK(f.split == -1);
    const bool has_rows = f.status == 0;
    CHECK((f.count > 0) == has_rows);
    CHECK(f.sample_rate == (has_rows ? kRate : 0));
    if (!has_rows) CHECK(f.duration == 0);
  }
  CHECK(offset == static_cast<std::int64_t>(out.rows()));
  CHECK(out.file("dog/1.wav").count == (4512 - 256) / 128 + 1);
  CHECK(out.file("dog/1.wav").duration == 4512.0 / kRate);
  CHECK(out.file("dog/cut.wav").duration == 4000.0 / kRate);
  const std::vector<Output::Remark> remarks{
      {3, "cat/broken.wav", 2, "decode", "is no sound file, or of a kind that cannot be decoded"},
      {4, "cat/short.wav", 1, "mel", "shorter than one frame: 10 samples of 256"},
      {8, "dog/cut.wav", 0, "decode", "short: the header promises 12044 bytes, the file has 8044"},
      {9, "dog/folder.wav", 1, "read", "is a folder, not a file"}};
  CHECK(out.remarks == remarks);
  CHECK(out.integers.at("found") == 11);
  CHECK(out.integers.at("ok") == 8);
  CHECK(out.integers.at("skipped") == 2);
  CHECK(out.integers.at("failed") == 1);
  CHECK(out.integers.at("not_run") == 0);
}

TEST_CASE("hdf5_write: a manifest's labels and splits are kept, and within a split its order") {
  const TempFolder folder;
  for (unsigned i = 0; i < 4; ++i)
    write_wav(folder.file(fmt::format("clips/{}.wav", i)), 2000 + 300 * i, kRate, i);
  folder.write("list.csv",
               "path,label,split\n2.wav,b,train\n0.wav,,test\n3.wav,a,\n0.wav,b,train\n");
  const JobResult job = run(
      pipeline({.files = "labels: manifest, manifest: '" + (folder / "list.csv") + "'"}), folder);
  REQUIRE_MESSAGE(job.complete(), job.text());
  const Output out = read_output(folder / "out.h5");
  CHECK(out.labels == std::vector<std::string>{"a", "b"});
  CHECK(out.splits == std::vector<std::string>{"train", "test"});
  const std::array<std::pair<std::int64_t, std::int64_t>, 4> expected{
      {{1, 0}, {1, 0}, {-1, 1}, {0, -1}}};
  REQUIRE(out.files.size() == 4);
  for (std::size_t i = 0; i < 4; ++i) {
    CHECK(out.files[i].label == expected[i].first);
    CHECK(out.files[i].split == expected[i].second);
  }
  CHECK(out.files[0].path == "2.wav");
  // A file that is named twice has its rows twice.
  const auto per_row = static_cast<std::ptrdiff_t>(out.values_per_row());
  const auto rows = [&](const Output::File& f) {
    return std::vector<float>(out.mel.begin() + f.offset * per_row,
                              out.mel.begin() + (f.offset + f.count) * per_row);
  };
  CHECK(rows(out.files[1]) == rows(out.files[2]));
  CHECK(check_output(folder / "out.h5") == "");
}

TEST_CASE("hdf5_write: float16 is what numpy makes of float32, bfloat16 the nearest there is") {
  const TempFolder folder;
  make_corpus(folder);
  // Plain powers go over the whole range of a half; a file with values beyond it fails, which is tested elsewhere.
  for (const char* mel : {"log: db", "log: none", "log: none, power: 6"}) {
    CAPTURE(std::string(mel));
    for (const char* type : {"float32", "float16", "bfloat16"}) {
      std::filesystem::remove(folder / (std::string(type) + ".h5"));
      const JobResult job = run(pipeline({.mel = mel, .write = std::string("dtype: ") + type}),
                                folder, std::string(type) + ".h5");
      REQUIRE_MESSAGE(job.complete(), job.text());
    }
    if (mel != std::string("log: none, power: 6"))
      CHECK(check_output(folder / "float16.h5", folder / "float32.h5") == "");
    CHECK(check_output(folder / "bfloat16.h5", folder / "float32.h5") == "");
  }
}

TEST_CASE("hdf5_write: values that need the whole file are the same in blocks as in one") {
  const TempFolder folder;
  write_audio(folder.file("clips/a.flac"), audio_kind("flac s16"), kRate, test_signal(300'000));
  write_wav(folder.file("clips/b.wav"), 3000, kRate, 5);
  // Loud at the end, so that the first blocks cannot know it.
  auto late = test_signal(200'000, 1, 3);
  for (std::size_t i = 0; i < 190'000; ++i) late[i] *= 0.001F;
  write_audio(folder.file("clips/c.flac"), audio_kind("flac s16"), kRate, late);
  for (const char* mel : {"log: db, top_db: 30", "log: db, ref: max",
                          "log: db, ref: max, top_db: 60", "log: log10, ref: max, center: false"}) {
    for (const char* type : {"float32", "float16", "bfloat16"}) {
      CAPTURE(std::string(mel));
      CAPTURE(std::string(type));
      const std::string write = std::string("overwrite: true, dtype: ") + type;
      const JobResult one =
          run(pipeline({.decode = "block: 8MiB", .mel = mel, .write = write}), folder, "one.h5");
      REQUIRE_MESSAGE(one.complete(), one.text());
      const Output expected = read_output(folder / "one.h5");
      CHECK(expected.rows() > 3000);
      const JobResult blocks = run(pipeline({.decode = "block: 64KiB", .mel = mel, .write = write}),
                                   folder, "blocks.h5");
      REQUIRE_MESSAGE(blocks.complete(), blocks.text());
      CHECK(read_output(folder / "blocks.h5").difference(expected) == "");
      if (std::string(mel).find("ref: max") != std::string::npos)
        for (const Output::File& f : expected.files) {
          const auto rows = expected.rows_of(f.path);
          CHECK(*std::max_element(rows.begin(), rows.end()) == 0.0F);
        }
    }
  }
  CHECK(files_in(folder.path()) == 3);  // clips and two outputs: nothing was spilled beside them
}

TEST_CASE("hdf5_write: a long file that fails midway leaves no rows, spilled or not") {
  const TempFolder folder;
  write_wav(folder.file("clips/a.wav"), 5000, kRate, 1);
  auto bad = test_signal(100'000);
  bad[90'000] = std::numeric_limits<float>::quiet_NaN();
  write_audio(folder.file("clips/b.wav"), audio_kind("wav float"), kRate, bad);
  write_wav(folder.file("clips/c.wav"), 7000, kRate, 2);
  for (const char* mel : {"log: db", "log: db, ref: max"}) {
    CAPTURE(std::string(mel));
    const JobResult job =
        run(pipeline({.decode = "block: 64KiB", .mel = mel, .write = "overwrite: true"}), folder);
    REQUIRE_MESSAGE(job.complete(), job.text());
    std::filesystem::rename(folder / "clips/b.wav", folder / "b.wav");
    const JobResult clean = run(pipeline({.mel = mel, .write = "overwrite: true"}), folder, "c.h5");
    std::filesystem::rename(folder / "b.wav", folder / "clips/b.wav");
    REQUIRE_MESSAGE(clean.complete(), clean.text());
    const Output out = read_output(folder / "out.h5"), expected = read_output(folder / "c.h5");
    CHECK(out.mel_bytes == expected.mel_bytes);
    CHECK(out.file("b.wav").count == 0);
    CHECK(out.file("b.wav").status == 2);
    CHECK(out.remarks.at(0).reason == "sample 90000 is not a finite number");
  }
}

TEST_CASE("hdf5_write: a file that fails in one branch leaves no rows in the other either") {
  const TempFolder folder;
  for (unsigned i = 0; i < 30; ++i)
    write_wav(folder.file(fmt::format("clips/{:02}.wav", i)), i % 3 == 1 ? 500 : 3000 + 100 * i,
              kRate, i);
  // The second branch wants 1024 samples for a frame: every third file is too short for it.
  const std::string yaml = pipeline({.mel = "center: false"}) +
                           "  wide: {stage: mel, from: batch, sample_rate: 8000, n_fft: 1024, "
                           "n_mels: 8, center: false}\n"
                           "  other: {stage: hdf5_write, from: wide, path: \"${OUT}.wide\"}\n";
  const JobResult job = run(yaml, folder);
  REQUIRE_MESSAGE(job.complete(), job.text());
  CHECK(job.report.counts.ok == 20);
  CHECK(job.report.counts.skipped == 10);
  for (unsigned i = 1; i < 30; i += 3)
    std::filesystem::remove(folder / fmt::format("clips/{:02}.wav", i));
  const JobResult clean = run(pipeline({.mel = "center: false"}), folder, "clean.h5");
  REQUIRE_MESSAGE(clean.complete(), clean.text());
  const Output expected = read_output(folder / "clean.h5");
  for (const char* name : {"out.h5", "out.h5.wide"}) {
    const Output out = read_output(folder / name);
    CAPTURE(std::string(name));
    CHECK(out.files.size() == 30);
    CHECK(out.remarks.size() == 10);
    std::int64_t offset = 0;
    for (std::size_t i = 0; i < 30; ++i) {
      CHECK((out.files[i].count == 0) == (i % 3 == 1));
      CHECK((out.files[i].status == 1) == (i % 3 == 1));
      CHECK(out.files[i].offset == offset);
      offset += out.files[i].count;
    }
    CHECK(offset == static_cast<std::int64_t>(out.rows()));
    if (std::string(name) == "out.h5") CHECK(out.mel_bytes == expected.mel_bytes);
    CHECK(check_output(folder / name) == "");
  }
}

TEST_CASE("hdf5_write: a run that leaves no row at all gives a file that can be read") {
  const TempFolder folder;
  folder.write("clips/a.wav", "no sound");
  folder.folder("clips/b.wav");
  for (const char* segment : {"tail: drop", "length: 1024"}) {
    const JobResult job = run(pipeline({.segment = segment, .write = "overwrite: true"}), folder);
    REQUIRE_MESSAGE(job.complete(), job.text());
    const Output out = read_output(folder / "out.h5");
    CHECK(out.rows() == 0);
    CHECK(out.shape.back() == 20);
    CHECK(out.remarks.size() == 2);
    CHECK(check_output(folder / "out.h5") == "");
  }
}

TEST_CASE("hdf5_write: names that are not text are kept as bytes") {
  const TempFolder folder;
  const std::string name = "d\xE9j\xE0.wav";  // Latin-1
  write_wav(folder.file("clips/" + name), 3000, kRate);
  const JobResult job = run(pipeline(), folder);
  REQUIRE_MESSAGE(job.complete(), job.text());
  CHECK(read_output(folder / "out.h5").files.at(0).path == name);
}

TEST_CASE("hdf5_write: a run that fails removes what it began, and names the reason") {
  const SmallDisk disk(1 << 20);
  if (!disk.ok()) {
    skip("a file system cannot be mounted here");
    return;
  }
  const TempFolder folder;
  // Many files wait for the first, long one while its rows fill the disk.
  write_audio(folder.file("clips/a.flac"), audio_kind("flac s16"), kRate, test_signal(2'000'000));
  for (unsigned i = 0; i < 200; ++i)
    write_wav(folder.file(fmt::format("clips/b{:03}.wav", i)), 4000, kRate, i);
  for (const char* mel : {"log: db", "log: db, ref: max"}) {
    CAPTURE(std::string(mel));
    const JobResult job = run_job(pipeline({.decode = "block: 64KiB", .mel = mel}),
                                  in_out(folder / "clips", disk / "out.h5"));
    CHECK(job.started);
    CHECK(job.report.ending == Ending::failed);
    CHECK(job.error ==
          disk / "out.h5.part" +
              ": the disk is full (No space left on device); the unfinished file is removed. Free "
              "some space or write elsewhere (hdf5_write.path)");
    const Ledger::Counts& c = job.report.counts;
    CHECK(c.ok + c.skipped + c.failed + c.not_run == c.found);
    CHECK(std::filesystem::is_empty(disk / ""));
    CHECK(job.stage("write").summary.empty());
  }
}

TEST_CASE("hdf5_write: files that wait their turn do not outlive a run that fails elsewhere") {
  const TempFolder folder;
  write_audio(folder.file("clips/a.flac"), audio_kind("flac s16"), kRate, test_signal(1'000'000));
  for (unsigned i = 0; i < 100; ++i)
    write_wav(folder.file(fmt::format("clips/b{:03}.wav", i)), 4000, kRate, i);
  // The second writer fails at once: its file may not be as large as the first's.
  const SmallDisk disk(256 * 1024);
  if (!disk.ok()) {
    skip("a file system cannot be mounted here");
    return;
  }
  const std::string yaml = pipeline({.decode = "block: 64KiB"}) +
                           "  other: {stage: hdf5_write, from: mel, path: \"" + (disk / "o.h5") +
                           "\"}\n";
  const JobResult job = run(yaml, folder);
  CHECK(job.report.ending == Ending::failed);
  CHECK(job.error.starts_with(disk / "o.h5.part: the disk is full"));
  CHECK(files_in(folder.path()) == 1);
  CHECK(std::filesystem::is_empty(disk / ""));
}

TEST_CASE("hdf5_write: of two outputs one cannot begin, and nothing of the other is left") {
  const TempFolder folder;
  write_wav(folder.file("clips/a.wav"), 4000, kRate);
  const JobResult job =
      run(pipeline() + "  other: {stage: hdf5_write, from: mel, path: \"${OUT}/no/such.h5\"}\n",
          folder);
  CHECK_FALSE(job.started);
  CHECK(job.error.find("there is no folder") != std::string::npos);
  CHECK(files_in(folder.path()) == 1);
}

TEST_CASE("hdf5_write: an output that another run is writing is left to it") {
  const TempFolder folder;
  write_wav(folder.file("clips/a.wav"), 4000, kRate);
  const RowFile other(folder / "out.h5", NumberType::float32, 1, Existing::refuse);
  const JobResult job = run(pipeline(), folder);
  CHECK_FALSE(job.started);
  CHECK(job.error == folder / "out.h5.part: another run is writing it");
  CHECK(std::filesystem::exists(folder / "out.h5.part"));
}

TEST_CASE("hdf5_write: a folder without write permission stops the run before it reads anything") {
  const TempFolder folder;
  write_wav(folder.file("clips/a.wav"), 4000, kRate);
  folder.folder("closed");
  REQUIRE(chmod((folder / "closed").c_str(), 0555) == 0);
  const OtherUser other;
  if (!other.ok()) {
    skip("cannot act as a user without rights");
    return;
  }
  const JobResult job = run(pipeline(), folder, "closed/out.h5");
  CHECK_FALSE(job.started);
  CHECK(job.error == folder / "closed/out.h5.part: cannot be written: Permission denied");
}

TEST_CASE("hdf5_write: a stopped run leaves a .part that says so, and a later run begins anew") {
  const TempFolder folder;
  for (unsigned i = 0; i < 300; ++i)
    write_wav(folder.file(fmt::format("clips/{:03}.wav", i)), 4000 + 10 * i, kRate, i);
  const JobResult whole = run(pipeline(), folder, "whole.h5");
  REQUIRE_MESSAGE(whole.complete(), whole.text());
  const Output expected = read_output(folder / "whole.h5");
  const JobResult job = run_and_stop(pipeline(), in_out(folder / "clips", folder / "out.h5"),
                                     {.let_in = 6, .closed = 5});
  REQUIRE_MESSAGE(job.error == "", job.text());
  REQUIRE(job.report.ending == Ending::stopped);
  CHECK_FALSE(std::filesystem::exists(folder / "out.h5"));
  const Output part = read_output(folder / "out.h5.part");
  CHECK(part.integers.at("complete") == 0);
  CHECK(part.integers.at("ok") == static_cast<std::int64_t>(job.report.counts.ok));
  CHECK(part.integers.at("not_run") == static_cast<std::int64_t>(job.report.counts.not_run));
  for (const Output::File& f : part.files) {
    CHECK((f.status == 0 || f.status == 3));
    if (f.status == 0) CHECK(part.rows_of(f.path) == expected.rows_of(f.path));
    if (f.status == 3) CHECK(f.count == 0);
  }
  CHECK(check_output(folder / "out.h5.part") == "");
  const JobResult again = run(pipeline({.write = "overwrite: true"}), folder);
  REQUIRE_MESSAGE(again.complete(), again.text());
  CHECK(read_output(folder / "out.h5").difference(expected) == "");
  CHECK_FALSE(std::filesystem::exists(folder / "out.h5.part"));
}

TEST_CASE("hdf5_write: equal features have equal hashes, whatever else the configuration says") {
  const TempFolder folder;
  write_wav(folder.file("clips/a.wav"), 4000, kRate);
  const auto hash = [&](const Options& options) {
    Options o = options;
    o.write += ", overwrite: true";
    const JobResult job = run(pipeline(o), folder);
    REQUIRE_MESSAGE(job.complete(), job.text());
    return read_output(folder / "out.h5").texts.at("feature_hash");
  };
  const std::string first = hash({.write = "sync: true"});
  CHECK(hash({.files = "labels: none", .decode = "block: 64KiB", .write = "dtype: float32"}) ==
        first);
  CHECK(hash({.write = "sync: false", .top = "memory: {host: 300MiB}\nworkers: 1"}) == first);
  CHECK(hash({.mel = "log: db, top_db: 80", .write = "sync: false"}) != first);
  // Other words for the same: what is a default anyway, or has no effect.
  CHECK(hash({.mel = "log: db, fmax: 4000, pad: 128, win_length: 256, kaiser_beta: 3",
              .write = "sync: true"}) == first);
  CHECK(hash({.mel = "log: db, preset: none, fmax: 0, vtln_low: 50, htk_compat: true",
              .write = "sync: true"}) == first);
  const std::pair<std::string, std::string> same[] = {
      {"use_energy: true", "use_energy: true, energy_floor: 1e-10"},
      {"normalize: fixed, norm_mean: -4", "normalize: fixed, norm_mean: [-4], norm_std: 1"},
      {"normalize: fixed, norm_mean: 0",
       "normalize: fixed, norm_mean: 0, norm_std: 3, norm_variance: false"},
      {"normalize: fixed, norm_mean: 2",
       "normalize: fixed, norm_mean: [2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2]"},
  };
  for (const auto& [one, other] : same) {
    CAPTURE(other);
    CHECK(hash({.mel = one, .write = "sync: true"}) == hash({.mel = other, .write = "sync: true"}));
  }
  CHECK(hash({.decode = "fit: 1s", .write = "sync: true"}) ==
        hash({.decode = "fit: 8000", .write = "sync: true"}));
  CHECK(hash({.segment = "min_length: 800", .write = "sync: true"}) ==
        hash({.segment = "min_length: 100ms", .write = "sync: true"}));
  CHECK(hash({.segment = "length: 1024", .write = "sync: true"}) ==
        hash({.segment = "length: 128ms, hop: 1024", .write = "sync: true"}));
  CHECK(hash({.mel = "log: db, preset: torchaudio", .write = "sync: true"}) == first);
  CHECK(hash({.decode = "fit: 1s", .write = "sync: false"}) != first);
  CHECK(hash({.segment = "length: 1024", .write = "sync: false"}) != first);
  // Half the precision is another value of /mel.
  CHECK(hash({.write = "dtype: float16"}) != first);
  CHECK(hash({.write = "dtype: bfloat16"}) != hash({.write = "dtype: float16"}));
}

TEST_CASE("hdf5_write: the output says which preset its features have and what was changed") {
  const TempFolder folder;
  write_wav(folder.file("clips/a.wav"), 4000, kRate);
  const std::pair<std::string, std::string> table[] = {
      {"preset: torchaudio", "torchaudio, with sample_rate, n_fft, hop and n_mels changed"},
      {"preset: whisper, normalize: none",
       "whisper, with sample_rate, n_fft, hop, n_mels and normalize changed"},
      {"preset: whisper, log: db, use_energy: false",
       "whisper, with sample_rate, n_fft, hop, n_mels and log changed"},
  };
  for (const auto& [mel, text] : table) {
    const JobResult job = run(pipeline({.mel = mel, .write = "overwrite: true"}), folder);
    REQUIRE_MESSAGE(job.complete(), job.text());
    CHECK(H5File(folder / "out.h5").text_attribute("/", "preset") == text);
  }
}

TEST_CASE("hdf5_write: columns that are no bands have their own label, an energy no frequency") {
  const TempFolder folder;
  write_wav(folder.file("clips/a.wav"), 4000, kRate);
  const auto yaml = [](const std::string& mel, const std::string& after) {
    std::string text = pipeline({.mel = mel});
    const std::size_t at = text.find("  write:");
    text.insert(at, "  last: {" + after + ", from: mel}\n");
    text.replace(text.find("from: mel, path"), 9, "from: last");
    return text;
  };
  REQUIRE(run(pipeline({.mel = "use_energy: true, htk_compat: true"}), folder).complete());
  {
    const H5File h5(folder / "out.h5");
    CHECK(h5.shape("mel").at(1) == 21);
    CHECK(std::isnan(h5.doubles("band_hz").at(20)));
    CHECK(h5.doubles("band_hz").at(19) > 3000);
    CHECK(h5.integer_attribute("mel", "energy_column") == 20);
  }
  std::filesystem::remove(folder / "out.h5");
  REQUIRE(run(pipeline({.mel = "output: spectrogram, power: 1"}), folder).complete());
  CHECK(H5File(folder / "out.h5").doubles("band_hz").at(128) == 4000);
  CHECK(H5File(folder / "out.h5").text_attribute("mel", "unit") == "amplitude");
  std::filesystem::remove(folder / "out.h5");
  const JobResult job = run(yaml("log: db", "stage: mfcc, n_mfcc: 7"), folder);
  REQUIRE_MESSAGE(job.complete(), job.text());
  CHECK(H5File(folder / "out.h5").shape("mel").at(1) == 7);
  CHECK_FALSE(H5File(folder / "out.h5").has("band_hz"));
  CHECK(H5File(folder / "out.h5").text_attribute("mel", "unit") == "cepstrum of dB");
}

TEST_CASE(
    "hdf5_write: compressed chunks hold the same rows, and none of files that failed on the way") {
  const TempFolder folder;
  for (unsigned i = 0; i < 9; ++i)
    write_wav(folder.file("clips/" + std::to_string(i) + ".wav"), 20'000 + 1000 * i, kRate, i);
  // Damaged in the middle: its first rows are placed before it fails.
  std::string flac;
  {
    write_audio(folder.file("clips/4b.flac"), audio_kind("flac s16"), kRate, test_signal(400'000));
    flac = read_bytes(folder / "clips/4b.flac");
    for (std::size_t i = flac.size() / 2; i < flac.size() / 2 + 3000; ++i) flac[i] = '\0';
    std::ofstream(folder / "clips/4b.flac", std::ios::binary) << flac;
  }
  const Options plain{.decode = "truncated: fail, block: 64KiB"};
  REQUIRE(run(pipeline(plain), folder).complete());
  const Output expected = read_output(folder / "out.h5");
  CHECK(expected.file("4b.flac").count == 0);
  CHECK(expected.file("4b.flac").status == 2);
  for (const char* how :
       {"layout: chunked", "compression: deflate", "compression: deflate, level: 9",
        "compression: deflate, shuffle: false, chunk: 4KiB"}) {
    CAPTURE(std::string(how));
    std::filesystem::remove(folder / "out.h5");
    Options o = plain;
    o.write = how;
    const JobResult job = run(pipeline(o), folder);
    REQUIRE_MESSAGE(job.complete(), job.text());
    CHECK(expected.difference(read_output(folder / "out.h5")) == "");
    CHECK(H5File(folder / "out.h5").layout("mel") == "chunked");
    CHECK(read_output(folder / "out.h5").texts.at("feature_hash") ==
          expected.texts.at("feature_hash"));
  }
  CHECK_THROWS_WITH_AS(run(pipeline({.write = "layout: contiguous, compression: deflate"}), folder),
                       "test.yaml:10:65: write.layout: a contiguous dataset cannot be compressed; "
                       "layout: auto chooses "
                       "chunks",
                       ConfigError);
}

TEST_CASE("hdf5_write: access chooses the size of chunks, unless that is given") {
  const TempFolder folder;
  write_wav(folder.file("clips/a.wav"), 4000, kRate);
  const std::pair<const char*, hsize_t> table[] = {
      {"compression: deflate", 262144 / 80},
      {"compression: deflate, access: sequential", 262144 / 80},
      {"compression: deflate, access: blocks", 32768 / 80},
      {"compression: deflate, access: shuffled", 8192 / 80},
      {"layout: chunked, access: shuffled", 8192 / 80},
      {"layout: chunked, dtype: float16, access: shuffled", 8192 / 40},
      {"layout: chunked, access: shuffled, chunk: 64KiB", 65536 / 80},
      {"layout: chunked, access: shuffled, chunk: auto", 8192 / 80},
      {"access: shuffled", 0},  // in one piece, where every row is as near
  };
  for (const auto& [write, rows] : table) {
    CAPTURE(std::string(write));
    const JobResult job =
        run(pipeline({.write = std::string("overwrite: true, ") + write}), folder);
    REQUIRE_MESSAGE(job.complete(), job.text());
    const Hid file(H5Fopen((folder / "out.h5").c_str(), H5F_ACC_RDONLY, H5P_DEFAULT), H5Fclose,
                   "file");
    const Hid mel(H5Dopen2(file, "mel", H5P_DEFAULT), H5Dclose, "mel");
    const Hid created(H5Dget_create_plist(mel), H5Pclose, "how it was made");
    std::array<hsize_t, 2> chunk{};
    if (H5Pget_layout(created) == H5D_CHUNKED) H5Pget_chunk(created, 2, chunk.data());
    CHECK(chunk[0] == rows);
  }
}

TEST_CASE("hdf5_write: a path is needed") {
  const TempFolder folder;
  write_wav(folder.file("clips/a.wav"), 4000, kRate);
  std::string yaml = pipeline();
  yaml.replace(yaml.find("path: \"${OUT}\", "), 16, "");
  LoadOptions options;
  options.vars = {{"DATA", folder / "clips"}};
  CHECK_THROWS_WITH_AS(run_job(yaml, options),
                       "test.yaml:10:3: write: 'path' is missing: which file should be written?",
                       ConfigError);
}
