// The endings of runs that cannot write, must not write or are stopped, for every kind of sink.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <filesystem>

#include "stages/files/part_file.h"
#include "tests/stage/sink_jobs.h"
#include "tests/support/hold.h"
#include "tests/support/printing.h"
#include "tests/support/problems.h"
#include "tests/support/skip.h"
#include "tests/support/small_disk.h"

namespace melflow::test::sink_endings_test {
namespace {

// Many files that wait for the first, long one.
void make_waiting_corpus(const TempFolder& folder, std::size_t samples, unsigned others) {
  write_audio(folder.file("clips/a.flac"), audio_kind("flac s16"), kRate,
              test_signal(static_cast<std::int64_t>(samples)));
  for (unsigned i = 0; i < others; ++i)
    write_wav(folder.file(fmt::format("clips/b{:03}.wav", i)), 4000, kRate, i);
}

}  // namespace

TEST_CASE("sinks: a run that fills the disk keeps what is done, and names the reason") {
  const SmallDisk disk(1 << 20);
  if (!disk.ok()) {
    skip("a file system cannot be mounted here");
    return;
  }
  const TempFolder folder;
  make_waiting_corpus(folder, 2'000'000, 200);
  for (const SinkKind& sink : kSinks)
    for (const char* mel : {"log: db", "log: db, ref: max"}) {
      CAPTURE(std::string(sink.stage));
      CAPTURE(std::string(mel));
      const JobResult job = run_job(pipeline(sink, {.decode = "block: 64KiB", .mel = mel}),
                                    in_out(folder / "clips", disk / "out"));
      CHECK(job.started);
      CHECK(job.report.ending == Ending::failed);
      CHECK(job.error ==
            fmt::format("{}{}.part: the disk is full (No space left on device). Free some space "
                        "or write elsewhere (option path of the {} node)",
                        disk / "out", sink.ending, sink.stage));
      const Ledger::Counts& c = job.report.counts;
      CHECK(c.ok + c.skipped + c.failed + c.not_run == c.found);
      // No file is done before the long one, which did not fit.
      CHECK(std::filesystem::is_empty(disk / ""));
      CHECK(job.stage("write").summary.empty());
    }
}

TEST_CASE("sinks: when another sink fails nothing of this one is left, nor of files that wait") {
  const TempFolder folder;
  make_waiting_corpus(folder, 1'000'000, 100);
  // The second writer fails at once: its file must be smaller than the first's.
  const SmallDisk disk(256 * 1024);
  if (!disk.ok()) {
    skip("a file system cannot be mounted here");
    return;
  }
  for (const SinkKind& sink : kSinks) {
    CAPTURE(std::string(sink.stage));
    const JobResult job = run_sinks(
        pipeline(sink, {.decode = "block: 64KiB"}) + sink_node("other", kHdf5, "mel", disk / "o"),
        folder);
    CHECK(job.report.ending == Ending::failed);
    CHECK(job.error.starts_with(disk / "o.h5.part: the disk is full"));
    CHECK(names_in(folder.path()) == Names{"clips"});
    CHECK(std::filesystem::is_empty(disk / ""));
  }
}

TEST_CASE("sinks: an output that cannot begin stops the run before it reads anything") {
  const TempFolder folder;
  write_wav(folder.file("clips/a.wav"), 4000, kRate);
  folder.folder("taken/out.index.npy");
  folder.folder("taken/out.h5");
  struct Row {
    SinkKind sink;
    std::string out, error;
  };
  const std::string no_folder = "there is no folder " + folder.path() +
                                "/no/such; make it first (mkdir -p) or write elsewhere ";
  const Row rows[] = {
      {kNpy, "no/such/out",
       folder / "no/such/out.npy: " + no_folder + "(option path of the npy_write node)"},
      {kHdf5, "no/such/out",
       folder / "no/such/out.h5: " + no_folder + "(option path of the hdf5_write node)"},
      {kNpy, "taken/out",
       folder / "taken/out.index.npy: this is a folder; npy_write.path takes a file name"},
      {kHdf5, "taken/out",
       folder / "taken/out.h5: this is a folder; hdf5_write.path takes a file name"},
  };
  for (const Row& row : rows) {
    const JobResult job = run_sinks(pipeline(row.sink), folder, row.out);
    CHECK_FALSE(job.started);
    CHECK(job.error == row.error);
    // Another output, which could begin, leaves nothing, either.
    const JobResult two =
        run_sinks(pipeline(kHdf5) + sink_node("other", row.sink, "mel", folder / row.out), folder);
    CHECK_FALSE(two.started);
    CHECK(two.error == row.error);
    CHECK(names_in(folder.path()) == Names{"clips", "taken"});
  }
  CHECK(names_in(folder / "taken") == Names{"out.index.npy", "out.h5"});
}

TEST_CASE("sinks: a folder without write permission stops the run before it reads anything") {
  const TempFolder folder;
  write_wav(folder.file("clips/a.wav"), 4000, kRate);
  folder.folder("closed");
  REQUIRE(chmod((folder / "closed").c_str(), 0555) == 0);
  const OtherUser other;
  if (!other.ok()) {
    skip("cannot act as a user without rights");
    return;
  }
  for (const SinkKind& sink : kSinks) {
    const JobResult job = run_sinks(pipeline(sink), folder, "closed/out");
    CHECK_FALSE(job.started);
    CHECK(job.error == fmt::format("{}{}.part: cannot be written: Permission denied",
                                   folder / "closed/out", sink.ending));
  }
}

TEST_CASE("sinks: an output that another run is writing is left to it") {
  const TempFolder folder;
  write_wav(folder.file("clips/a.wav"), 4000, kRate);
  for (const SinkKind& sink : kSinks)
    for (const std::string& ending : sink.endings) {
      const std::string name = "out" + ending;
      CAPTURE(name);
      const PartFile other(folder / name, sink.stage, Existing::refuse);
      const JobResult job = run_sinks(pipeline(sink), folder);
      CHECK_FALSE(job.started);
      CHECK(job.error == folder / name + ".part: another run is writing it");
      CHECK(names_in(folder.path()) == Names{"clips", name + ".part"});
    }
}

TEST_CASE("sinks: an output is replaced only where that is asked for, each file of it") {
  const TempFolder folder;
  write_wav(folder.file("clips/a.wav"), 4000, kRate);
  for (const SinkKind& sink : kSinks)
    for (const std::string& ending : sink.endings) {
      const std::string name = "out" + ending;
      CAPTURE(name);
      folder.write(name, "precious");
      const JobResult job = run_sinks(pipeline(sink), folder);
      CHECK_FALSE(job.started);
      CHECK(job.error ==
            fmt::format("{}: exists already; remove it, write elsewhere, set "
                        "overwrite: true in the {} node, or go on with it (melflow update)",
                        folder / name, sink.stage));
      CHECK(read_bytes(folder / name) == "precious");
      CHECK(names_in(folder.path()) == Names{"clips", name});
      completed(run_sinks(pipeline(sink, {.write = "overwrite: true"}), folder));
      CHECK((sink.ending == kNpy.ending ? check_npy("'" + (folder / "out.npy") + "'")
                                        : check_h5(folder / "out.h5")) == "");
      for (const std::string& made : sink.endings) std::filesystem::remove(folder / ("out" + made));
    }
}

TEST_CASE("sinks: a stopped run leaves .part files that say so, and a later run goes on") {
  const TempFolder folder;
  for (unsigned i = 0; i < 300; ++i)
    write_wav(folder.file(fmt::format("clips/{:03}.wav", i)), 16000 + 10 * i, kRate, i);
  const JobResult whole = completed(run_sinks(pipeline_of_both(), folder, "whole"));
  const Output expected = read_output(folder / "whole.h5");
  const JobResult job = run_and_stop(pipeline_of_both(), in_out(folder / "clips", folder / "out"),
                                     {.let_in = 6, .closed = 5});
  REQUIRE_MESSAGE(job.error == "", job.text());
  REQUIRE(job.report.ending == Ending::stopped);
  CHECK(names_in(folder.path()) == Names{"clips", "whole.h5", "whole.npy", "whole.index.npy",
                                         "whole.index.json", "out.npy.part", "out.h5.part",
                                         "out.index.npy.part", "out.index.json.part",
                                         "out.npy.journal", "out.h5.journal"});
  const Output part = read_output(folder / "out.h5.part");
  CHECK(part.integers.at("complete") == 0);
  CHECK(part.integers.at("ok") == static_cast<std::int64_t>(job.report.counts.ok));
  CHECK(part.integers.at("not_run") == static_cast<std::int64_t>(job.report.counts.not_run));
  for (const Output::File& f : part.files) {
    CHECK((f.status == 0 || f.status == 3));
    if (f.status == 0) CHECK(part.rows_of(f.path) == expected.rows_of(f.path));
    if (f.status == 3) CHECK(f.count == 0);
  }
  CHECK(check_h5(folder / "out.h5.part") == "");
  // The script expects `complete` to be false, and the contents that hdf5_write has in this run.
  CHECK(difference_from_h5(folder, "out", ".part") == "");
  const std::string document = read_bytes(folder / "out.index.json.part");
  CHECK(document.find(fmt::format("\n\"not_run\": {},\n", job.report.counts.not_run)) !=
        document.npos);
  for (const auto& [name, value] : job.stage("write").summary)
    if (name == "path") CHECK(value.text() == folder / "out.npy.part");
  const JobResult again =
      completed(run_sinks(with_held_files(pipeline_of_both({.write = "overwrite: true"})), folder));
  CHECK(again.report.kept == job.report.counts.ok);
  CHECK(read_output(folder / "out.h5").difference(expected) == "");
  CHECK((rows_file(folder, "out") == rows_file(folder, "whole")));
  CHECK(difference_from_h5(folder) == "");
  CHECK(names_in(folder.path()).size() == 1 + 4 + 4);
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
        pipeline(kNpy, {.write = "overwrite: true"}) +
        fmt::format("  other: {{stage: {}, from: mel, path: \"{}\"}}\n", row.stage, row.path);
    if (row.taken.empty()) {
      CHECK(run_sinks(yaml, folder).complete());
      continue;
    }
    const std::string message = problems_in([&] { return run_sinks(yaml, folder); });
    CHECK(message == fmt::format("test.yaml:11:{}: other.path: {} is also written by write "
                                 "(npy_write); give it another path",
                                 row.stage == "npy_write" ? 46 : 47, row.taken));
    CHECK(names_in(folder.path()) == Names{"clips"});
  }
}

}  // namespace melflow::test::sink_endings_test
