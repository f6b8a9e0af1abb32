// Runs that cannot start or cannot finish: a message that says what to do, and nothing half-made
// under the output's name.
#include <doctest/doctest.h>

#include <sys/resource.h>
#include <sys/stat.h>

#include <csignal>

#include "tests/jobs/shared.h"
#include "tests/support/hold.h"

namespace endings_test {

using namespace melflow;
using namespace melflow::test;

namespace {

void make_clips(const TempFolder& folder, unsigned count, std::int64_t frames = 8000) {
  for (unsigned i = 0; i < count; ++i)
    write_wav(folder.file("clips/" + std::to_string(i) + ".wav"), frames, 16000, i);
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != text.npos;
}

}  // namespace

TEST_CASE("endings: what cannot start says why and what to do") {
  TempFolder folder;
  make_clips(folder, 3);
  folder.folder("nothing");
  folder.write("there.h5", "something of the user's");
  struct Row {
    std::string data, out;
    const char* says;
  };
  const Row rows[] = {
      {folder / "nothing", folder / "o.h5", "no file matches"},
      {folder / "no_such", folder / "o.h5", "cannot list the folder: No such file"},
      {folder / "clips/0.wav", folder / "o.h5", "is a file, but root takes a folder"},
      {folder / "clips", folder / "missing/o.h5", "there is no folder"},
      {folder / "clips", folder / "there.h5", "exists already"},
      {folder / "clips", folder / "nothing", "is a folder"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.says);
    const JobResult job = run_job(speech_pipeline({}), in_out(row.data, row.out));
    CHECK_FALSE(job.started);
    CHECK_MESSAGE(contains(job.error, row.says), job.error);
    CHECK_FALSE(std::filesystem::exists(row.out + ".part"));
  }
  CHECK(read_bytes(folder / "there.h5") == "something of the user's");
}

TEST_CASE("endings: a full disk fails the run and names the file; with room the run goes on") {
  TempFolder folder;
  make_clips(folder, 40, 64000);
  // A limit on the size of files stands for the full disk: the same call fails at the same place.
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  const rlimit small{2 << 20, before.rlim_max};
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  setrlimit(RLIMIT_FSIZE, &small);
  const JobResult job = run_job(speech_pipeline({}), in_out(folder / "clips", folder / "o.h5"));
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  CHECK(job.report.ending == Ending::failed);
  CHECK_MESSAGE(contains(job.error, "o.h5.part"), job.error);
  CHECK_FALSE(std::filesystem::exists(folder / "o.h5"));
  const Ledger::Counts& c = job.report.counts;
  CHECK(c.ok + c.skipped + c.failed + c.not_run == c.found);
  const JobResult next = run_job(speech_pipeline({}), in_out(folder / "clips", folder / "o.h5"));
  REQUIRE_MESSAGE(next.complete(), next.text());
  CHECK(next.report.kept > 0);
  CHECK(next.report.kept < 40);
  const JobResult whole = run_job(speech_pipeline({}), in_out(folder / "clips", folder / "w.h5"));
  REQUIRE_MESSAGE(whole.complete(), whole.text());
  CHECK(read_output(folder / "o.h5").difference(read_output(folder / "w.h5")) == "");
  CHECK_FALSE(std::filesystem::exists(folder / "o.h5.journal"));
}

TEST_CASE("endings: a stopped run leaves a valid .part with the files that were done") {
  TempFolder folder;
  make_clips(folder, 60, 32000);
  write_audio(folder.file("clips/long.flac"), audio_kind("flac s16"), 16000, test_signal(3000000));
  const JobResult whole = run_job(speech_pipeline({}), in_out(folder / "clips", folder / "w.h5"));
  REQUIRE_MESSAGE(whole.complete(), whole.text());
  const Output expected = read_output(folder / "w.h5");
  // Batches are of 8 files.
  for (const StopAt at : {StopAt{0, 0}, StopAt{8, 1}, StopAt{8, 7}, StopAt{40, 40}}) {
    CAPTURE(at.closed);
    const Knobs k{.block = "64KiB"};
    const JobResult job =
        run_and_stop(speech_pipeline(k), in_out(folder / "clips", folder / "s.h5"), at);
    std::filesystem::remove(folder / "s.h5.journal");  // the next one begins from the beginning
    const Ledger::Counts& c = job.report.counts;
    CHECK(c.ok + c.skipped + c.failed + c.not_run == c.found);
    CHECK(c.failed == 0);
    REQUIRE(job.report.ending == Ending::stopped);
    CHECK_FALSE(std::filesystem::exists(folder / "s.h5"));
    const Output out = read_output(folder / "s.h5.part");
    CHECK(out.integers.at("complete") == 0);
    CHECK(out.integers.at("not_run") > 0);
    std::size_t ok = 0;
    for (const Output::File& f : out.files) {
      if (f.status != 0) continue;
      ++ok;
      CHECK(out.rows_of(f.path) == expected.rows_of(f.path));
    }
    CHECK(ok == c.ok);
  }
}

TEST_CASE("endings: overwrite replaces the old file only when the new one is complete") {
  TempFolder folder;
  make_clips(folder, 3);
  const std::string out = folder.write("o.h5", "old");
  std::string yaml = speech_pipeline({});
  yaml.replace(yaml.find("path:"), 5, "overwrite: true, path:");
  const JobResult job = run_job(yaml, in_out(folder / "clips", out));
  REQUIRE_MESSAGE(job.complete(), job.text());
  CHECK(read_output(out).files.size() == 3);
  CHECK_FALSE(std::filesystem::exists(out + ".part"));
}

}  // namespace endings_test
