// Updates that resume an interrupted one. tests/apps/kill_walk.py kills updates and compares every
// byte.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <filesystem>

#include "tests/jobs/shared.h"
#include "tests/support/hold.h"
#include "tests/support/printing.h"

namespace melflow::test::update_resume_test {

namespace fs = std::filesystem;

namespace {

constexpr unsigned kBefore = 20, kFiles = 40;

std::string clip(unsigned i) { return fmt::format("clips/{:02}.wav", i); }

std::string pipeline(const std::string& write, const std::string& stage = "hdf5_write") {
  return rows_pipeline("include: [\"*.wav\"]", write + ", checkpoint: 1", stage);
}

// With one worker files are done in order, so that the files done before the stop are the first.
LoadOptions in_order(LoadOptions options) {
  options.workers = 1;
  return options;
}

// An update of an output of 20 files, by 20 new ones, that is stopped when at least three of these
// are done.
struct Stopped {
  explicit Stopped(std::string text, std::string output = "out.h5", Update how = Update::append)
      : yaml(std::move(text)), out(std::move(output)), kind(how) {
    clips(0, kBefore);
    REQUIRE(run_job(with_held_files(yaml), in_out(folder / "clips", folder / out)).complete());
    fs::create_directory(folder / "w");
    for (const std::string& name : outputs()) fs::copy(folder / name, folder / ("w/" + name));
    before = read_bytes(folder / out);
    clips(kBefore, kFiles);
    folder.write(clip(25), "no sound");
    const JobResult job = run_and_stop(yaml, in_order(in_out(folder / "clips", folder / out)),
                                       {.let_in = 35, .closed = kBefore + 9}, kind);
    REQUIRE_MESSAGE(job.report.ending == Ending::stopped, job.text());
    CHECK(read_bytes(folder / out) == before);
  }
  void clips(unsigned first, unsigned last) const {
    for (unsigned i = first; i < last; ++i)
      write_wav(folder.file(clip(i)), 8000 + 300 * i, 8000, i);
  }
  Names outputs() const {
    Names names = names_in(folder.path());
    std::erase_if(names, [](const std::string& name) { return !name.starts_with("out"); });
    return names;
  }
  JobResult go_on(Resume::When when = Resume::When::automatic) { return go_on(kind, when); }
  JobResult go_on(Update how, Resume::When when = Resume::When::automatic) {
    said.clear();
    return run_job(with_held_files(yaml), in_out(folder / "clips", folder / out), {}, how,
                   {when, [this](const std::string& text) { said += text + "\n"; }});
  }
  // Compares with an uninterrupted update of the original output.
  void check_output() const {
    completed(
        run_job(with_held_files(yaml), in_out(folder / "clips", folder / ("w/" + out)), {}, kind));
    CHECK(names_in(folder / "w") == outputs());
    if (out.ends_with(".h5")) {
      CHECK(read_output(folder / out).difference(read_output(folder / ("w/" + out))) == "");
    } else {
      for (const char* name : {"out.npy", "out.index.npy"})
        CHECK(read_bytes(folder / name) == read_bytes(folder / (std::string("w/") + name)));
    }
  }

  TempFolder folder;
  std::string yaml, out, before, said;
  Update kind;
};

std::size_t told(const JobResult& job, const char* what) {
  for (const auto& [name, value] : job.stage("write").summary)
    if (name == what) return std::stoul(value.text());
  return 0;
}

bool says(const Stopped& s, const std::string& text) { return s.said.find(text) != s.said.npos; }

}  // namespace

TEST_CASE("update: one that was stopped goes on behind what is done, and says so") {
  struct Row {
    const char* write;
    const char* stage;
    const char* out;
    Update kind;
    const char* work;
  };
  const Row rows[] = {
      {"sync: false", "hdf5_write", "out.h5", Update::append, "out.h5.new.part"},
      {"dtype: float16, sync: true", "hdf5_write", "out.h5", Update::append, "out.h5.new.part"},
      {"statistics: all", "hdf5_write", "out.h5", Update::append, "out.h5.new.part"},
      {"statistics: all", "hdf5_write", "out.h5", Update::compact, "out.h5.part"},
      {"compression: deflate, chunk: 4KiB", "hdf5_write", "out.h5", Update::append, "out.h5.part"},
      {"statistics: all", "npy_write", "out.npy", Update::append, "out.npy.new.part"},
      {"statistics: all", "npy_write", "out.npy", Update::compact, "out.npy.part"},
  };
  for (const Row& row : rows) {
    CAPTURE(std::string(row.write));
    CAPTURE(std::string(row.work));
    Stopped s(pipeline(row.write, row.stage), row.out, row.kind);
    CHECK(fs::exists(s.folder / row.work));
    const JobResult job = completed(s.go_on());
    CHECK(told(job, "resumed_files") >= 3);
    CHECK(told(job, "kept_files") == kBefore);
    CHECK(told(job, "resumed_files") + job.stage("read").items_in == kFiles - kBefore);
    CHECK_MESSAGE(says(s, fmt::format("resumes an interrupted update; {} of {} files are done",
                                      kBefore + told(job, "resumed_files"), kFiles)),
                  s.said);
    CHECK(job.report.counts.failed == 1);
    s.check_output();
  }
}

TEST_CASE("update: from the first new file that has changed since, all is made again") {
  Stopped s(pipeline("sync: false"));
  write_wav(s.folder.file(clip(22)), 9000, 8000, 99);
  CHECK(told(completed(s.go_on()), "resumed_files") == 2);
  s.check_output();
}

TEST_CASE(
    "update: work that belongs to another output, or goes elsewhere, is kept as a backup, never "
    "cut") {
  for (const bool is_changed : {false, true}) {
    CAPTURE(is_changed);
    Stopped s(pipeline("max_dropped: 100%"));
    const std::string work = read_bytes(s.folder / "out.h5.new.part");
    if (is_changed) {  // a file of the output changes: its rows cannot stay, so all are copied
      write_wav(s.folder.file(clip(3)), 9000, 8000, 99);
    } else {  // an output of another run, with fewer files
      std::string fewer = s.yaml;
      fewer.replace(fewer.find("*.wav"), 5, "0*.wav");
      for (const char* folder : {"other.h5", "w/out.h5"}) {
        fs::remove(s.folder / folder);
        REQUIRE(run_job(with_held_files(fewer), in_out(s.folder / "clips", s.folder / folder))
                    .complete());
      }
      fs::rename(s.folder / "other.h5", s.folder / "out.h5");
    }
    CHECK(s.go_on(Resume::When::required).error.find("it was made with another") !=
          std::string::npos);
    CHECK(told(completed(s.go_on()), "resumed_files") == 0);
    CHECK_MESSAGE(says(s, is_changed ? "place of the rows that it has (in place, now copied)"
                                     : "another output to update ("),
                  s.said);
    CHECK(read_bytes(s.folder / "out.h5.new.part.backup") == work);
    fs::remove(s.folder / "out.h5.new.part.backup");
    s.check_output();
  }
}

TEST_CASE("update: resume never begins from the beginning, require wants something to go on with") {
  Stopped s(pipeline("sync: false"));
  const JobResult anew = completed(s.go_on(Resume::When::never));
  CHECK(told(anew, "resumed_files") == 0);
  CHECK(anew.stage("read").items_in == kFiles - kBefore);
  const std::string now = read_bytes(s.folder / "out.h5");
  CHECK(s.go_on(Resume::When::required).error ==
        s.folder /
            "out.h5: there is nothing to resume: there is no interrupted run of it; omit "
            "--resume to start over");
  CHECK(read_bytes(s.folder / "out.h5") == now);
  s.check_output();
}

TEST_CASE(
    "update: a run that was stopped and an update go on with the same work where no output is "
    "there") {
  const TempFolder folder;
  const std::string yaml = pipeline("sync: false");
  // A stopped run with less than 32 KiB of rows leaves a small file, which is not resumed.
  for (unsigned i = 0; i < kFiles; ++i) write_wav(folder.file(clip(i)), 40'000, 8000, i);
  const LoadOptions options = in_out(folder / "clips", folder / "out.h5");
  std::size_t before = 0;
  for (const Update kind : {Update::none, Update::append, Update::none}) {
    const JobResult job =
        run_and_stop(yaml, in_order(options), {.let_in = before + 15, .closed = before + 9}, kind);
    REQUIRE_MESSAGE(job.report.ending == Ending::stopped, job.text());
    CHECK(told(job, "resumed_files") >= before);
    before += 9;
  }
  const JobResult job = completed(run_job(with_held_files(yaml), options, {}, Update::append));
  CHECK(told(job, "resumed_files") >= before);
  CHECK(names_in(folder.path()) == Names{"clips", "out.h5"});
}

TEST_CASE("update: a run with other ends leaves the work of an update alone") {
  Stopped s(pipeline("overwrite: true"));
  const std::string work = read_bytes(s.folder / "out.h5.new.part");
  completed(s.go_on(Update::none));
  CHECK_MESSAGE(says(s, "since it was made with another output to update"), s.said);
  CHECK(read_bytes(s.folder / "out.h5.new.part.backup") == work);
}

}  // namespace melflow::test::update_resume_test
