#include <doctest/doctest.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <limits>
#include <thread>

#include "stages/files/part_file.h"
#include "tests/support/concurrency_probe.h"
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
  bool with_h5 = true;  ///< hdf5_write beside it, to compare with
};

std::string pipeline(const Options& o = {}) {
  std::string yaml = fmt::format(R"(version: 1
graph:
{}  write: {{stage: npy_write, from: mel, path: "${{OUT}}.npy", {}}}
)",
                                 nodes_to_mel(o.files, o.decode, o.segment, o.mel), o.write);
  if (o.with_h5)
    yaml += "  h5: {stage: hdf5_write, from: mel, path: \"${OUT}.h5\", " + o.write + "}\n";
  return yaml;
}

Options alone(Options o = {}) {
  o.with_h5 = false;
  return o;
}

/// `out`: of the output's name what is before ".npy".
JobResult run(const std::string& yaml, const TempFolder& folder, const std::string& out = "out") {
  return run_job(yaml, in_out(folder / "clips", folder / out));
}

std::set<std::string> names_in(const std::string& path) {
  std::set<std::string> out;
  for (const auto& entry : std::filesystem::directory_iterator(path))
    out.insert(entry.path().filename());
  return out;
}
using Names = std::set<std::string>;

// What the Python script says about a file; "" when everything is right.
std::string check_npy(const std::string& arguments) {
  return python_says("stage/read_npy.py", arguments);
}

// Of a run with both sinks.
std::string difference_from_h5(const TempFolder& folder, const std::string& out = "out",
                               const std::string& part = "") {
  return check_npy(fmt::format("'{0}.npy{1}' --h5 '{0}.h5{1}'", folder / out, part));
}

// The rows as they are stored, header and all.
std::string rows_file(const TempFolder& folder, const std::string& out) {
  return read_bytes(folder / (out + ".npy"));
}

// Names of a document's entries, one of which begins each line.
std::vector<std::string> entries_of(const std::string& document) {
  std::vector<std::string> out;
  for (std::size_t at = 0; (at = document.find("\n\"", at)) != std::string::npos; ++at)
    out.push_back(document.substr(at + 2, document.find('"', at + 2) - at - 2));
  return out;
}

}  // namespace

TEST_CASE("npy_write: rows, index and document are as documented, and as hdf5_write has them") {
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
      {"an energy", {.mel = "use_energy: true, htk_compat: true"}, 2, "float32"},
      {"a preset", {.mel = "preset: whisper, log: db"}, 2, "float32"},
      {"on disk", {.write = "sync: true"}, 2, "float32"},
  };
  const std::string text = read_bytes(source_path("docs/output-format.md"));
  for (const Row& row : rows) {
    CAPTURE(std::string(row.what));
    const JobResult job = run(pipeline(row.options), folder);
    REQUIRE_MESSAGE(job.complete(), job.text());
    CHECK(difference_from_h5(folder) == "");
    CHECK(names_in(folder.path()) ==
          Names{"clips", "scratch.wav", "out.h5", "out.npy", "out.index.npy", "out.index.json"});
    for (const std::string& name : entries_of(read_bytes(folder / "out.index.json")))
      CHECK_MESSAGE(text.find("`" + name + "`") != text.npos, name);
    // The report says the same.
    std::vector<std::string> names;
    for (const auto& [name, value] : job.stage("write").summary) {
      names.push_back(name);
      if (name == "path") CHECK(value.text() == folder / "out.npy");
      if (name == "complete") CHECK(value.text() == "true");
      if (name == "dtype") CHECK(value.text() == row.type);
      if (name == "shape") CHECK(value.items().size() == row.axes);
      if (name == "bytes")
        CHECK(value.text() ==
              std::to_string(std::filesystem::file_size(folder / "out.npy") - 4096));
    }
    CHECK(names == std::vector<std::string>{"path", "complete", "rows", "shape", "dtype", "bytes"});
    for (const char* ending : {".h5", ".npy", ".index.npy", ".index.json"})
      std::filesystem::remove(folder / (std::string("out") + ending));
  }
}

TEST_CASE("npy_write: a manifest's labels and splits are kept, and within a split its order") {
  const TempFolder folder;
  for (unsigned i = 0; i < 4; ++i)
    write_wav(folder.file(fmt::format("clips/{}.wav", i)), 2000 + 300 * i, kRate, i);
  folder.write("list.csv",
               "path,label,split\n2.wav,b,train\n0.wav,,test\n3.wav,a,\n0.wav,b,train\n");
  const JobResult job = run(
      pipeline({.files = "labels: manifest, manifest: '" + (folder / "list.csv") + "'",
                .write = "split_files: false"}),
      folder);
  REQUIRE_MESSAGE(job.complete(), job.text());
  CHECK(difference_from_h5(folder) == "");
  const Output h5 = read_output(folder / "out.h5");
  CHECK(h5.files.at(0).path == "2.wav");
  CHECK(h5.labels == std::vector<std::string>{"a", "b"});
  CHECK(h5.splits == std::vector<std::string>{"train", "test"});
}

TEST_CASE("npy_write: float16 is what numpy makes of float32, bfloat16 the nearest there is") {
  const TempFolder folder;
  make_corpus(folder);
  // Plain powers go over the whole range of a half; a file with values beyond it fails, which is tested elsewhere.
  for (const char* mel : {"log: db", "log: none", "log: none, power: 6"}) {
    CAPTURE(std::string(mel));
    for (const char* type : {"float32", "float16", "bfloat16"}) {
      for (const char* ending : {".npy", ".index.npy", ".index.json"})
        std::filesystem::remove(folder / (std::string(type) + ending));
      const JobResult job =
          run(pipeline(alone({.mel = mel, .write = std::string("dtype: ") + type})), folder, type);
      REQUIRE_MESSAGE(job.complete(), job.text());
      CHECK(job.plan_warnings.size() ==
            (std::string(mel) != "log: db" && std::string(type) == "float16" ? 1 : 0));
    }
    for (const char* type : {"float16", "bfloat16"}) {
      if (mel == std::string("log: none, power: 6") && type == std::string("float16")) continue;
      CHECK(check_npy(fmt::format("'{}.npy' --float32 '{}'", folder / type,
                                  folder / "float32.npy")) == "");
    }
  }
}

TEST_CASE("npy_write: values that need the whole file are the same in blocks as in one") {
  const TempFolder folder;
  write_audio(folder.file("clips/a.flac"), audio_kind("flac s16"), kRate, test_signal(300'000));
  write_wav(folder.file("clips/b.wav"), 3000, kRate, 5);
  // Loud at the end, so that the first blocks cannot know it.
  auto late = test_signal(200'000, 1, 3);
  for (std::size_t i = 0; i < 190'000; ++i) late[i] *= 0.001F;
  write_audio(folder.file("clips/c.flac"), audio_kind("flac s16"), kRate, late);
  for (const char* mel : {"log: db, top_db: 30", "log: db, ref: max, top_db: 60"}) {
    for (const char* type : {"float32", "float16", "bfloat16"}) {
      CAPTURE(std::string(mel));
      CAPTURE(std::string(type));
      const std::string write = std::string("overwrite: true, dtype: ") + type;
      const JobResult one =
          run(pipeline({.decode = "block: 8MiB", .mel = mel, .write = write}), folder, "one");
      REQUIRE_MESSAGE(one.complete(), one.text());
      const JobResult blocks =
          run(pipeline({.decode = "block: 64KiB", .mel = mel, .write = write}), folder, "blocks");
      REQUIRE_MESSAGE(blocks.complete(), blocks.text());
      CHECK(difference_from_h5(folder, "one") == "");
      CHECK(difference_from_h5(folder, "blocks") == "");
      CHECK(rows_file(folder, "one").size() > 3000 * 20 * 2);
      CHECK((rows_file(folder, "one") == rows_file(folder, "blocks")));
      CHECK((read_bytes(folder / "one.index.npy") == read_bytes(folder / "blocks.index.npy")));
    }
  }
  CHECK(names_in(folder.path()).size() ==
        9);  // clips and two sets: nothing was spilled beside them
}

TEST_CASE("npy_write: a long file that fails midway leaves no rows, spilled or not") {
  const TempFolder folder;
  write_wav(folder.file("clips/a.wav"), 5000, kRate, 1);
  auto bad = test_signal(100'000);
  bad[90'000] = std::numeric_limits<float>::quiet_NaN();
  for (const char* name : {"b", "d"})  // the last one, too: behind its rows come none
    write_audio(folder.file(fmt::format("clips/{}.wav", name)), audio_kind("wav float"), kRate,
                bad);
  write_wav(folder.file("clips/c.wav"), 7000, kRate, 2);
  write_wav(folder.file("good/a.wav"), 5000, kRate, 1);
  write_wav(folder.file("good/c.wav"), 7000, kRate, 2);
  for (const char* mel : {"log: db", "log: db, ref: max"}) {
    CAPTURE(std::string(mel));
    const JobResult job =
        run(pipeline({.decode = "block: 64KiB", .mel = mel, .write = "overwrite: true"}), folder);
    REQUIRE_MESSAGE(job.complete(), job.text());
    CHECK(job.report.counts.failed == 2);
    const JobResult clean = run_job(pipeline(alone({.mel = mel, .write = "overwrite: true"})),
                                    in_out(folder / "good", folder / "clean"));
    REQUIRE_MESSAGE(clean.complete(), clean.text());
    CHECK((rows_file(folder, "out") == rows_file(folder, "clean")));
    CHECK(difference_from_h5(folder) == "");
  }
}

TEST_CASE("npy_write: a file that fails in one branch leaves no rows in the other either") {
  const TempFolder folder;
  for (unsigned i = 0; i < 30; ++i)
    write_wav(folder.file(fmt::format("clips/{:02}.wav", i)), i % 3 == 1 ? 500 : 3000 + 100 * i,
              kRate, i);
  // The second branch wants 1024 samples for a frame: every third file is too short for it.
  const std::string yaml =
      pipeline({.mel = "center: false"}) +
      "  wide: {stage: mel, from: batch, sample_rate: 8000, n_fft: 1024, n_mels: 8, center: false}"
      "\n"
      "  other: {stage: npy_write, from: wide, path: \"${OUT}.wide.npy\"}\n"
      "  other5: {stage: hdf5_write, from: wide, path: \"${OUT}.wide.h5\"}\n";
  const JobResult job = run(yaml, folder);
  REQUIRE_MESSAGE(job.complete(), job.text());
  CHECK(job.report.counts.ok == 20);
  CHECK(job.report.counts.skipped == 10);
  CHECK(difference_from_h5(folder) == "");
  CHECK(difference_from_h5(folder, "out.wide") == "");
  for (unsigned i = 1; i < 30; i += 3)
    std::filesystem::remove(folder / fmt::format("clips/{:02}.wav", i));
  const JobResult clean = run(pipeline(alone({.mel = "center: false"})), folder, "clean");
  REQUIRE_MESSAGE(clean.complete(), clean.text());
  CHECK((rows_file(folder, "out") == rows_file(folder, "clean")));
}

TEST_CASE("npy_write: rows of files that fail when they are written already are closed up") {
  const TempFolder folder;
  // Of each batch the second branch finds one file too short, after the first has written all.
  std::size_t rows = 0;
  for (unsigned i = 0; i < 9; ++i) {
    const unsigned length = i % 3 == 1 ? 500 : 3000;
    rows += (length - 256) / 128 + 1;
    write_wav(folder.file(fmt::format("clips/{}.wav", i)), length, kRate, i);
    if (i % 3 != 1) write_wav(folder.file(fmt::format("good/{}.wav", i)), length, kRate, i);
  }
  const std::string yaml =
      pipeline({.mel = "center: false"}) +
      "  late: {stage: hold_batch, from: batch, queue: 8}\n"
      "  wide: {stage: mel, from: late, sample_rate: 8000, n_fft: 1024, n_mels: 8, center: false}\n"
      "  other: {stage: npy_write, from: wide, path: \"${OUT}.wide.npy\"}\n";
  Gate written;
  const Hold hold([&](std::size_t) { written.wait(); });
  const JobResult job =
      run_job(yaml, in_out(folder / "clips", folder / "out"), [&](Runner& runner) {
        // By both sinks of the first branch.
        while (runner.progress().rows < 2 * rows) std::this_thread::yield();
        written.open();
      });
  REQUIRE_MESSAGE(job.complete(), job.text());
  CHECK(job.report.counts.skipped == 3);
  int closed_up = 0;
  for (const std::string& warning : job.report.warnings)
    closed_up += warning.find("that failed late were taken out of " + (folder / "out.")) !=
                 std::string::npos;
  CHECK(closed_up == 2);
  CHECK(difference_from_h5(folder) == "");
  const JobResult clean =
      run_job(pipeline(alone({.mel = "center: false"})), in_out(folder / "good", folder / "clean"));
  REQUIRE_MESSAGE(clean.complete(), clean.text());
  CHECK((rows_file(folder, "out") == rows_file(folder, "clean")));
}

TEST_CASE("npy_write: a run that leaves no row at all gives a file that can be read and mapped") {
  const TempFolder folder;
  folder.write("clips/a.wav", "no sound");
  folder.folder("clips/b.wav");
  for (const char* segment : {"tail: drop", "length: 1024"}) {
    const JobResult job = run(pipeline({.segment = segment, .write = "overwrite: true"}), folder);
    REQUIRE_MESSAGE(job.complete(), job.text());
    CHECK(difference_from_h5(folder) == "");
    CHECK(rows_file(folder, "out").find("'shape': (0, ") != std::string::npos);
  }
}

TEST_CASE("npy_write: columns that are no bands have their own label and no frequency") {
  const TempFolder folder;
  write_wav(folder.file("clips/a.wav"), 4000, kRate);
  std::string yaml = pipeline();
  yaml.insert(yaml.find("  write:"), "  last: {stage: mfcc, n_mfcc: 7, from: mel}\n");
  for (std::size_t at; (at = yaml.find("from: mel, path")) != yaml.npos;)
    yaml.replace(at, 9, "from: last");
  const JobResult job = run(yaml, folder);
  REQUIRE_MESSAGE(job.complete(), job.text());
  CHECK(difference_from_h5(folder) == "");
  const std::string document = read_bytes(folder / "out.index.json");
  CHECK(document.find(R"("axes": ["row", "coefficient"])") != document.npos);
  CHECK(document.find("\n\"band_hz\"") == document.npos);
}

TEST_CASE("npy_write: names that are not text are kept as bytes, wherever they stand") {
  const TempFolder folder;
  const std::string odd = "d\xE9j\xE0";  // Latin-1
  write_wav(folder.file("clips/" + odd + "/a\xFF.wav"), 3000, kRate);
  write_wav(folder.file("clips/\xED\x95\x9C\xEA\xB8\x80/\xF0\x9F\x90\x95\"\\\n.wav"), 3000, kRate);
  // What looks like UTF-8 and is none: a surrogate, too long a form, an end too early.
  folder.write("clips/" + odd + "/\xED\xB3\xA9 \xC0\xAF \xE2\x82.wav", "no sound");
  std::filesystem::rename(folder / "clips", folder / ("clips" + odd));
  const JobResult job =
      run_job(pipeline(), in_out(folder / ("clips" + odd), folder / ("out" + odd)));
  REQUIRE_MESSAGE(job.complete(), job.text());
  CHECK(job.report.counts.failed == 1);
  CHECK(difference_from_h5(folder, "out" + odd) == "");
}

TEST_CASE("npy_write: rows, and their hash, do not depend on the format of the file") {
  const TempFolder folder;
  write_wav(folder.file("clips/a.wav"), 4000, kRate);
  for (const char* type : {"float32", "float16", "bfloat16"}) {
    const JobResult job =
        run(pipeline({.write = std::string("overwrite: true, dtype: ") + type}), folder);
    REQUIRE_MESSAGE(job.complete(), job.text());
    // The script compares `feature_hash` and `features` with those of the HDF5 file, and the rows.
    CHECK(difference_from_h5(folder) == "");
  }
}

TEST_CASE("npy_write: a full disk removes all three files, whatever did not fit, and is named") {
  struct Row {
    const char* what;
    std::size_t disk;
    std::string mel;
    unsigned good, broken;
    std::string file;  ///< that did not fit
  };
  // A file of 256 samples is a row of 80 bytes; its record in the index, with a name of 200
  // letters, 240; a broken one has a remark of some 300 bytes besides.
  const Row rows[] = {
      {"the rows", 64 << 10, "center: false", 2000, 0, "out.npy.part"},
      {"the rows, which are finished at the end", 64 << 10, "center: false, ref: max, log: db",
       2000, 0, "out.npy.part"},
      {"the index", 64 << 10, "center: false", 300, 0, "out.index.npy.part"},
      {"the document", 96 << 10, "center: false", 10, 250, "out.index.json.part"},
  };
  for (const Row& row : rows) {
    CAPTURE(std::string(row.what));
    const SmallDisk disk(row.disk);
    if (!disk.ok()) {
      skip("a file system cannot be mounted here");
      return;
    }
    const TempFolder folder;
    const std::string name(200, 'x');
    for (unsigned i = 0; i < row.good; ++i)
      write_wav(folder.file(fmt::format("clips/{:04}{}.wav", i, name)), 256, kRate, i);
    for (unsigned i = 0; i < row.broken; ++i)
      folder.write(fmt::format("clips/b{:04}{}.wav", i, name), "no sound");
    const JobResult job =
        run_job(pipeline(alone({.mel = row.mel})), in_out(folder / "clips", disk / "out"));
    CHECK(job.started);
    CHECK(job.report.ending == Ending::failed);
    CHECK(job.error ==
          disk / row.file +
              ": the disk is full (No space left on device); the unfinished file is removed. Free "
              "some space or write elsewhere (npy_write.path)");
    const Ledger::Counts& c = job.report.counts;
    CHECK(c.ok + c.skipped + c.failed + c.not_run == c.found);
    CHECK(std::filesystem::is_empty(disk / ""));
    CHECK(job.stage("write").summary.empty());
  }
}

TEST_CASE("npy_write: a long recording that fills the disk while many wait for it") {
  const SmallDisk disk(1 << 20);
  if (!disk.ok()) {
    skip("a file system cannot be mounted here");
    return;
  }
  const TempFolder folder;
  write_audio(folder.file("clips/a.flac"), audio_kind("flac s16"), kRate, test_signal(2'000'000));
  for (unsigned i = 0; i < 200; ++i)
    write_wav(folder.file(fmt::format("clips/b{:03}.wav", i)), 4000, kRate, i);
  for (const char* mel : {"log: db", "log: db, ref: max"}) {
    CAPTURE(std::string(mel));
    const JobResult job = run_job(pipeline(alone({.decode = "block: 64KiB", .mel = mel})),
                                  in_out(folder / "clips", disk / "out"));
    CHECK(job.report.ending == Ending::failed);
    CHECK(job.error.starts_with(disk / "out.npy.part: the disk is full"));
    CHECK(std::filesystem::is_empty(disk / ""));
  }
}

TEST_CASE("npy_write: when another sink fails, nothing of this one is left") {
  const TempFolder folder;
  write_audio(folder.file("clips/a.flac"), audio_kind("flac s16"), kRate, test_signal(1'000'000));
  for (unsigned i = 0; i < 100; ++i)
    write_wav(folder.file(fmt::format("clips/b{:03}.wav", i)), 4000, kRate, i);
  const SmallDisk disk(256 * 1024);
  if (!disk.ok()) {
    skip("a file system cannot be mounted here");
    return;
  }
  const std::string yaml = pipeline(alone({.decode = "block: 64KiB"})) +
                           "  other: {stage: hdf5_write, from: mel, path: \"" + (disk / "o.h5") +
                           "\"}\n";
  const JobResult job = run(yaml, folder);
  CHECK(job.report.ending == Ending::failed);
  CHECK(job.error.starts_with(disk / "o.h5.part: the disk is full"));
  CHECK(names_in(folder.path()) == Names{"clips"});
  CHECK(std::filesystem::is_empty(disk / ""));
}

TEST_CASE("npy_write: a stopped run leaves .part files that say so, and a later run begins anew") {
  const TempFolder folder;
  for (unsigned i = 0; i < 300; ++i)
    write_wav(folder.file(fmt::format("clips/{:03}.wav", i)), 4000 + 10 * i, kRate, i);
  const JobResult whole = run(pipeline(alone()), folder, "whole");
  REQUIRE_MESSAGE(whole.complete(), whole.text());
  const JobResult job =
      run_and_stop(pipeline(), in_out(folder / "clips", folder / "out"), {.let_in = 6, .closed = 5});
  REQUIRE_MESSAGE(job.error == "", job.text());
  REQUIRE(job.report.ending == Ending::stopped);
  CHECK(names_in(folder.path()) == Names{"clips", "whole.npy", "whole.index.npy",
                                         "whole.index.json", "out.npy.part", "out.h5.part",
                                         "out.index.npy.part", "out.index.json.part"});
  // The script wants `complete` to be false, and what hdf5_write says of the same run.
  CHECK(difference_from_h5(folder, "out", ".part") == "");
  const std::string document = read_bytes(folder / "out.index.json.part");
  CHECK(document.find(fmt::format("\n\"not_run\": {},\n", job.report.counts.not_run)) !=
        document.npos);
  for (const auto& [name, value] : job.stage("write").summary)
    if (name == "path") CHECK(value.text() == folder / "out.npy.part");
  const JobResult again = run(pipeline({.write = "overwrite: true"}), folder);
  REQUIRE_MESSAGE(again.complete(), again.text());
  CHECK((rows_file(folder, "out") == rows_file(folder, "whole")));
  CHECK(difference_from_h5(folder) == "");
  CHECK(names_in(folder.path()).size() == 1 + 3 + 4);
}

TEST_CASE("npy_write: a set is replaced only where that is asked for, each file of it") {
  const TempFolder folder;
  write_wav(folder.file("clips/a.wav"), 4000, kRate);
  for (const char* name : {"out.npy", "out.index.npy", "out.index.json"}) {
    CAPTURE(std::string(name));
    folder.write(name, "precious");
    const JobResult job = run(pipeline(alone()), folder);
    CHECK_FALSE(job.started);
    CHECK(job.error == folder / name +
                           ": exists already; remove it, write elsewhere, set overwrite: true on npy_write, "
        "or go on with it (melflow update)");
    CHECK(read_bytes(folder / name) == "precious");
    CHECK(names_in(folder.path()) == Names{"clips", name});
    const JobResult forced = run(pipeline(alone({.write = "overwrite: true"})), folder);
    REQUIRE_MESSAGE(forced.complete(), forced.text());
    CHECK(check_npy("'" + (folder / "out.npy") + "'") == "");
    for (const char* made : {"out.npy", "out.index.npy", "out.index.json"})
      std::filesystem::remove(folder / made);
  }
}

TEST_CASE("npy_write: an output that cannot begin stops the run before it reads anything") {
  const TempFolder folder;
  write_wav(folder.file("clips/a.wav"), 4000, kRate);
  folder.folder("closed");
  folder.folder("taken/out.index.npy");
  const std::pair<std::string, std::string> table[] = {
      {"no/such/out", folder / "no/such/out.npy: there is no folder " + folder.path() +
                          "/no/such; make it first (mkdir -p) or write elsewhere "
                          "(npy_write.path)"},
      {"taken/out", folder / "taken/out.index.npy: is a folder; npy_write.path takes a file name"},
  };
  for (const auto& [out, error] : table) {
    const JobResult job = run(pipeline(alone()), folder, out);
    CHECK_FALSE(job.started);
    CHECK(job.error == error);
  }
  CHECK(names_in(folder / "taken") == Names{"out.index.npy"});
  REQUIRE(chmod((folder / "closed").c_str(), 0555) == 0);
  const OtherUser other;
  if (!other.ok()) {
    skip("cannot act as a user without rights");
    return;
  }
  const JobResult job = run(pipeline(alone()), folder, "closed/out");
  CHECK_FALSE(job.started);
  CHECK(job.error == folder / "closed/out.npy.part: cannot be written: Permission denied");
}

TEST_CASE("npy_write: an output that another run is writing is left to it") {
  const TempFolder folder;
  write_wav(folder.file("clips/a.wav"), 4000, kRate);
  for (const char* name : {"out.npy", "out.index.npy", "out.index.json"}) {
    const PartFile other(folder / name, "npy_write", Existing::refuse);
    const JobResult job = run(pipeline(alone()), folder);
    CHECK_FALSE(job.started);
    CHECK(job.error == folder / name + ".part: another run is writing it");
    CHECK(names_in(folder.path()) == Names{"clips", std::string(name) + ".part"});
  }
}

TEST_CASE("npy_write: a path is needed, and one that ends in .npy") {
  const TempFolder folder;
  write_wav(folder.file("clips/a.wav"), 4000, kRate);
  std::string yaml = pipeline(alone());
  const std::string path = "path: \"${OUT}.npy\", ";
  LoadOptions options;
  options.vars = {{"DATA", folder / "clips"}};
  const std::size_t at = yaml.find(path);
  yaml.replace(at, path.size(), "");
  CHECK_THROWS_WITH_AS(run_job(yaml, options),
                       "test.yaml:9:3: write: 'path' is missing: which file should be written?",
                       ConfigError);
  yaml.insert(at, "path: rows.h5, ");
  CHECK_THROWS_WITH_AS(run_job(yaml, options),
                       "test.yaml:9:46: write.path: 'rows.h5' does not end in .npy; the names of "
                       "the index are made from what is before that",
                       ConfigError);
}

TEST_CASE("sinks: two that would write the same file are found before the run") {
  const TempFolder folder;
  write_wav(folder.file("clips/a.wav"), 4000, kRate);
  struct Row {
    std::string stage, path;
    std::string taken;  ///< "" where both can run
  };
  const Row rows[] = {
      {"npy_write", folder / "out.npy", folder / "out.npy"},
      {"npy_write", folder / "clips/.././out.npy", folder / "clips/.././out.npy"},
      {"npy_write", folder / "out.index.npy", folder / "out.index.npy"},
      {"hdf5_write", folder / "out.index.json", folder / "out.index.json"},
      {"hdf5_write", folder / "out.npy", folder / "out.npy"},
      {"npy_write", folder / "out2.npy", ""},
      {"hdf5_write", folder / "out.h5", ""},
  };
  for (const Row& row : rows) {
    CAPTURE(row.stage);
    CAPTURE(row.path);
    const std::string yaml =
        pipeline(alone({.write = "overwrite: true"})) +
        fmt::format("  other: {{stage: {}, from: mel, path: \"{}\"}}\n", row.stage, row.path);
    if (row.taken.empty()) {
      CHECK(run(yaml, folder).complete());
      continue;
    }
    std::string message;
    try {
      run(yaml, folder);
    } catch (const ConfigError& e) {
      message = e.what();
    }
    CHECK(message == fmt::format("test.yaml:10:{}: other: {} would be written by write "
                                 "(npy_write), too; give it another path",
                                 row.stage == "npy_write" ? 46 : 47, row.taken));
    CHECK(names_in(folder.path()) == Names{"clips"});
  }
}
