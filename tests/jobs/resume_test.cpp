// Runs that resume an interrupted one: what is kept, what is not trusted, and the messages.
// tests/apps/kill_walk.py kills runs and compares every byte.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <filesystem>
#include <fstream>

#include "stages/features/mel/mel_kernel.h"
#include "stages/features/mel/real_fft.h"
#include "stages/files/log_file.h"
#include "stages/output/row_sink.h"
#include "tests/jobs/front_end_options.h"
#include "tests/jobs/shared.h"
#include "tests/support/hold.h"
#include "tests/support/printing.h"
#include "tests/support/small_disk.h"

namespace melflow::test::resume_test {
namespace {

constexpr unsigned kFiles = 40;

std::string clip(unsigned i) { return fmt::format("{:02}.wav", i); }

// Recordings of `frames` and more.
void make_long_corpus(const TempFolder& folder, unsigned frames, int rate) {
  for (unsigned i = 0; i < kFiles; ++i)
    write_wav(folder.file("clips/" + clip(i)), frames + 100 * i, rate, i);
  folder.write("clips/" + clip(5), "no sound");
}
void make_corpus(const TempFolder& folder) { make_long_corpus(folder, 24000, 16000); }

std::string with(std::string yaml, const std::string& option) {
  yaml.replace(yaml.find("path:"), 5, option + ", path:");
  return yaml;
}

// A job whose first run is stopped when some files are done.
struct Stopped {
  explicit Stopped(std::string text, std::string output = "out.h5", unsigned frames = 24000,
                   int rate = 16000)
      : yaml(std::move(text)), out(std::move(output)) {
    make_long_corpus(folder, frames, rate);
    const JobResult job =
        run_and_stop(yaml, in_out(folder / "clips", folder / out), {.let_in = 24, .closed = 8});
    REQUIRE_MESSAGE(job.report.ending == Ending::stopped, job.text());
    done = job.report.counts.closed() - job.report.counts.not_run;
    REQUIRE(done >= 8);
    REQUIRE(done < kFiles);
  }
  JobResult go_on(Resume::When when = Resume::When::automatic) {
    said.clear();
    return run_job(with_held_files(yaml), in_out(folder / "clips", folder / out), {}, Update::none,
                   {when, [this](const std::string& text) { said += text + "\n"; }});
  }
  // Compares the output with that of a run that was never interrupted.
  void check_output() const {
    completed(run_job(with_held_files(yaml), in_out(folder / "clips", folder / ("w/" + out))));
    CHECK(read_output(folder / out).difference(read_output(folder / ("w/" + out))) == "");
    CHECK_FALSE(std::filesystem::exists(folder / (out + ".part")));
    CHECK_FALSE(std::filesystem::exists(folder / (out + ".journal")));
  }

  TempFolder folder;
  std::string yaml, out;
  std::size_t done = 0;  // files
  std::string said;
};

std::size_t resumed(const JobResult& job) {
  for (const auto& [name, value] : job.stage("write").summary)
    if (name == "resumed_files") return std::stoul(value.text());
  return 0;
}

}  // namespace

TEST_CASE("resume: a run goes on behind what is done, and says so") {
  for (const char* option : {"sync: false", "dtype: float16", "statistics: all",
                             "compression: deflate, chunk: 4KiB", "sync: true"}) {
    CAPTURE(std::string(option));
    Stopped s(with(speech_pipeline({.batch = 1}), option));
    s.folder.folder("w");
    const JobResult job = completed(s.go_on());
    CHECK(resumed(job) == s.done);
    CHECK(s.said.find(fmt::format("resumes an interrupted run; {} of {} files", s.done, kFiles)) !=
          s.said.npos);
    // A file that had failed keeps its warning.
    CHECK(job.report.counts.failed == 1);
    CHECK(job.remarks_by_name().at(clip(5)).find("no sound") != std::string::npos);
    s.check_output();
  }
}

TEST_CASE("front end options: each stage's options are in one of the pipelines") {
  std::string texts;
  for (const FrontEndOptions& o : front_end_options()) texts += pipeline_of(o, 1);
  for (const char* stage :
       {"fit_samples", "normalize_samples", "stack", "fit_rows", "sliding_cmvn"}) {
    const auto config = Registry::global().find(stage)->configure();
    for (const Field& f : config->schema().fields()) {
      CAPTURE(stage + ("." + f.name));
      CHECK((f.is_tuning || texts.find(f.name + ": ") != texts.npos));
    }
  }
}

TEST_CASE("resume: every option of today's front ends, with 1, 2 and 4 workers in turn") {
  const Filled<make_corpus> folder;
  folder.folder("w");
  const int workers[] = {1, 2, 4};
  for (std::size_t i = 0; i < front_end_options().size(); ++i) {
    const FrontEndOptions& o = front_end_options()[i];
    CAPTURE(std::string(o.what));
    const auto text = [&](std::size_t turn) { return pipeline_of(o, workers[(i + turn) % 3]); };
    const LoadOptions to = in_out(folder / "clips", folder / "out.h5");
    const JobResult stopped = run_and_stop(text(0), to, {.let_in = 24, .closed = 8});
    REQUIRE_MESSAGE(stopped.report.ending == Ending::stopped, stopped.text());
    const JobResult job = completed(
        run_job(with_held_files(text(1)), to, {}, Update::none, {Resume::When::required, {}}));
    CHECK(resumed(job) >= 8);
    CHECK(resumed(job) < kFiles);
    completed(run_job(with_held_files(text(2)), in_out(folder / "clips", folder / "w/out.h5")));
    CHECK(read_output(folder / "out.h5").difference(read_output(folder / "w/out.h5")) == "");
    std::filesystem::remove(folder / "out.h5");
    std::filesystem::remove(folder / "w/out.h5");
  }
}

TEST_CASE("resume: rows of int32, as fingerprints are") {
  for (const char* option : {"layout: contiguous", "compression: deflate, chunk: 4KiB"}) {
    CAPTURE(std::string(option));
    // Of 26 s: the rows of eight are more than the 32 KiB that are moved, and so begin anew.
    Stopped s(with(R"(version: 1
workers: 2
graph:
  files: {stage: file_list, root: "${DATA}", include: ["**/*"]}
  decode: {stage: decode, from: files}
  print: {stage: fingerprint, from: decode}
  write: {stage: hdf5_write, from: print, path: "${OUT}"}
)",
                   option),
              "out.h5", 104'000, 4000);
    s.folder.folder("w");
    const JobResult job = completed(s.go_on());
    CHECK(resumed(job) == s.done);
    CHECK(read_output(s.folder / "out.h5").type == "int32");
    s.check_output();
  }
}

TEST_CASE("resume: a full disk fails the run and names the file; with room it goes on") {
  const TempFolder folder;
  for (unsigned i = 0; i < kFiles; ++i) write_wav(folder.file("clips/" + clip(i)), 64000, 16000, i);
  const auto run = [&](const char* out) {
    // One worker: the first file is done before the disk is full.
    return run_job(speech_pipeline({.batch = 1, .workers = 1}),
                   in_out(folder / "clips", folder / out));
  };
  {
    const FileSizeLimit small(2 << 20);  // stands for a full disk: the same call fails
    const JobResult job = run("o.h5");
    CHECK(job.report.ending == Ending::failed);
    CHECK_MESSAGE(job.error.find("o.h5.part") != std::string::npos, job.error);
    CHECK_FALSE(std::filesystem::exists(folder / "o.h5"));
  }
  const JobResult next = completed(run("o.h5"));
  completed(run("w.h5"));
  CHECK(next.report.kept > 0);
  CHECK(next.report.kept < kFiles);
  CHECK(read_output(folder / "o.h5").difference(read_output(folder / "w.h5")) == "");
  CHECK_FALSE(std::filesystem::exists(folder / "o.h5.journal"));
}

TEST_CASE("resume: from the first file that has changed since, all is made again") {
  struct Row {
    const char* what;
    std::size_t kept;
    std::function<void(const TempFolder&)> change;
  };
  const Row rows[] = {
      {"other samples", 6,
       [](const TempFolder& f) { write_wav(f.file("clips/" + clip(6)), 9000, 16000, 99); }},
      {"a file more", 3,
       [](const TempFolder& f) { write_wav(f.file("clips/02a.wav"), 9000, 16000); }},
      {"a file less", 7,
       [](const TempFolder& f) { std::filesystem::remove(f / ("clips/" + clip(7))); }},
      {"one that failed is fixed", 5,
       [](const TempFolder& f) { write_wav(f.file("clips/" + clip(5)), 9000, 16000); }},
      {"the first file", 0,
       [](const TempFolder& f) { write_wav(f.file("clips/" + clip(0)), 9000, 16000, 99); }},
  };
  for (const Row& row : rows) {
    CAPTURE(std::string(row.what));
    Stopped s(speech_pipeline({.batch = 1}));
    s.folder.folder("w");
    row.change(s.folder);
    CHECK(resumed(completed(s.go_on())) == row.kept);
    CHECK(s.said.ends_with("this one starts over\n") == (row.kept == 0));
    s.check_output();
  }
}

TEST_CASE("resume: rows that are not what they were are made again") {
  // A stopped run was at its ending, so that all rows are checked.
  Stopped s(speech_pipeline({.batch = 1}));
  s.folder.folder("w");
  const Output part = read_output(s.folder / "out.h5.part");
  const Output::File& spoiled = part.file(clip(7));
  {
    std::fstream file(s.folder / "out.h5.part", std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(static_cast<std::streamoff>(
        (64 << 10) + (spoiled.offset + 1) * 4 * static_cast<std::int64_t>(part.values_per_row())));
    file.put('\x7f');
  }
  CHECK(resumed(completed(s.go_on())) == 7);
  s.check_output();
}

TEST_CASE("resume: a journal that is cut off anywhere is trusted as far as it goes") {
  Stopped s(with(speech_pipeline({.batch = 1}), "checkpoint: 1"));
  s.folder.folder("w");
  const std::string journal = read_bytes(s.folder / "out.h5.journal");
  const std::string part = read_bytes(s.folder / "out.h5.part");
  std::size_t before = 0;
  for (std::size_t cut = 0; cut <= journal.size();
       cut += std::max<std::size_t>(1, journal.size() / 12)) {
    CAPTURE(cut);
    s.folder.write("out.h5.journal", journal.substr(0, cut));
    s.folder.write("out.h5.part", part);
    std::filesystem::remove(s.folder / "out.h5");
    std::filesystem::remove(s.folder / "w/out.h5");
    const JobResult job = completed(s.go_on());
    CHECK(resumed(job) >= before);
    CHECK(resumed(job) <= s.done);
    before = resumed(job);
    s.check_output();
  }
  CHECK(before > 0);
}

TEST_CASE("resume: work with other settings is kept as a backup, never cut") {
  Stopped s(speech_pipeline({.batch = 1}));
  s.folder.folder("w");
  const std::string part = read_bytes(s.folder / "out.h5.part");
  s.yaml = with(s.yaml, "dtype: float16");
  CHECK(s.go_on(Resume::When::required).error.find("it was made with another") !=
        std::string::npos);
  CHECK(resumed(completed(s.go_on())) == 0);
  CHECK(s.said.find("dtype (float32, now float16)") != s.said.npos);
  CHECK(s.said.find("moved to " + (s.folder / "out.h5.part.backup")) != s.said.npos);
  CHECK(read_bytes(s.folder / "out.h5.part.backup") == part);
  s.check_output();
}

TEST_CASE("resume: AVX2 and AVX-512 are one where they give the same bytes") {
  const std::string here(MelKernel::instruction_set());
  const bool is_wide = here == "avx2" || here == "avx512";
  const auto set_of = [](const std::string& mel, const std::string& from = "mel") {
    const Plan plan = load_plan_text(
        fmt::format("version: 1\ngraph:\n"
                    "  files: {{stage: file_list, root: clips}}\n"
                    "  read: {{stage: disk_read, from: files}}\n"
                    "  decode: {{stage: decode, from: read}}\n"
                    "  segment: {{stage: segment, from: decode}}\n"
                    "  batch: {{stage: batch, from: segment}}\n"
                    "  mel: {{stage: mel, from: batch, sample_rate: 16000, hop: 160, {}}}\n"
                    "  two: {{stage: mel, from: batch, sample_rate: 16000, hop: 160, {}}}\n"
                    "  both: {{stage: concat, from: [mel, two]}}\n"
                    "  out: {{stage: hdf5_write, from: {}, path: out.h5}}\n"
                    "  end: {{stage: discard, from: {}}}\n",
                    mel, mel, from, from == "mel" ? "both" : "mel"),
        "test.yaml", {});
    for (const PlanNode& n : plan.nodes)
      if (const auto* sink = dynamic_cast<const RowSink*>(n.stage.get()))
        for (const auto& [name, value] : sink->row_facts())
          if (name == "instruction set") return value;
    return std::string();
  };
  for (const char* from : {"mel", "both"})
    CHECK(set_of("n_mels: 20", from) == (is_wide ? "avx2 or avx512" : here));
  // FFTW chooses its code by the processor; melflow's own transform gives the same bytes anywhere.
  const std::string by_fftw = is_wide ? here + " with FFTW" : here;
  const std::string by_own = (is_wide ? "avx2 or avx512" : here) + ", transform by melflow";
  for (const char* mel : {"n_mels: 20, precision: double", "n_fft: 509", "n_fft: 32768"})
    for (const char* from : {"mel", "both"})
      CHECK(set_of(mel, from) == (transform_name() == "fftw" ? by_fftw : by_own));
  // For an output that is to be updated.
  const ComputedBy agree{"cpu", "avx512", true}, differ{"cpu", "avx512"};
  CHECK(agree.sets_like("cpu avx2") == agree.sets_like("cpu avx512"));
  CHECK(differ.sets_like("cpu avx2") != differ.sets_like("cpu avx512"));
  CHECK(agree.sets_like("cpu baseline") == "cpu baseline");
  for (const ComputedBy& here_now : {agree, differ})
    for (const std::string set : {"avx512", "avx2", "baseline"})
      CHECK(here_now.sets_like(set) != here_now.sets_like(set + ", transform by melflow"));
}

TEST_CASE("resume: failures that were too many end the next run at once, and more go on") {
  const Filled<make_corpus> folder;
  for (unsigned i = 0; i < 5; ++i) folder.write("clips/" + clip(i), "no sound");
  const auto run = [&](const std::string& limit) {
    return run_job(speech_pipeline({.batch = 1}, "", "", "max_failures: " + limit + "\n"),
                   in_out(folder / "clips", folder / "out.h5"));
  };
  REQUIRE(run("3").report.ending == Ending::failed);
  for (int i = 0; i < 2; ++i) {
    const JobResult again = run("3");
    CHECK(again.report.ending == Ending::failed);
    CHECK_MESSAGE(again.error.find(" of 40 files had failed already, more than max_failures (3)") !=
                      again.error.npos,
                  again.error);
    CHECK(again.stage("read").files_in == 0);
  }
  const JobResult more = completed(run("10"));
  CHECK(more.report.counts.failed == 6);
  CHECK(resumed(more) >= 4);
  const JobResult whole =
      run_job(speech_pipeline({.batch = 1}), in_out(folder / "clips", folder / "whole.h5"));
  CHECK(read_output(folder / "out.h5").difference(read_output(folder / "whole.h5")) == "");
}

TEST_CASE("resume: never begins from the beginning, require wants something to go on with") {
  Stopped s(speech_pipeline({.batch = 1}));
  s.folder.folder("w");
  CHECK(resumed(completed(s.go_on(Resume::When::never))) == 0);
  s.check_output();
  std::filesystem::remove(s.folder / "out.h5");
  const JobResult refused = s.go_on(Resume::When::required);
  CHECK_FALSE(refused.started);
  CHECK(refused.error ==
        s.folder /
            "out.h5: there is nothing to resume: there is no interrupted run of it; omit "
            "--resume to start over");
}

TEST_CASE("resume: require says why an interrupted run is of no use") {
  Stopped s(speech_pipeline({.batch = 1}));
  write_wav(s.folder.file("clips/" + clip(0)), 9000, 16000, 77);
  const JobResult refused = s.go_on(Resume::When::required);
  CHECK_FALSE(refused.started);
  CHECK(refused.error ==
        s.folder /
            ("out.h5: there is nothing to resume: the interrupted run began with another file, or "
             "with other contents, than " +
             clip(0) + "; omit --resume to start over"));
}

TEST_CASE("log file: what was appended comes back, up to the first byte that is another") {
  const TempFolder folder;
  const std::string path = folder / "log";
  std::vector<std::string> records;
  {
    const auto log = LogFile::create(path);
    for (std::size_t i = 0; i < 20; ++i) {
      records.emplace_back(i * 7, static_cast<char>('a' + i));
      log->append(records.back());
    }
  }
  const std::string bytes = read_bytes(path);
  const auto read = [&] {
    std::vector<std::string> out;
    const auto log = LogFile::open(path);
    for (std::string record; log->next(record);) out.push_back(record);
    return out;
  };
  CHECK(read() == records);
  for (std::size_t at = 14; at < bytes.size(); at += 5) {
    CAPTURE(at);
    std::string spoiled = bytes;
    spoiled[at] = static_cast<char>(spoiled[at] ^ 1);
    folder.write("log", spoiled);
    const std::vector<std::string> there = read();
    CHECK(there.size() < records.size());
    CHECK(std::equal(there.begin(), there.end(), records.begin()));
    folder.write("log", bytes.substr(0, at));
    CHECK(read().size() <= there.size());
  }
  // Resumes after the last complete record.
  folder.write("log", bytes.substr(0, bytes.size() - 1));
  {
    const auto log = LogFile::open(path);
    for (std::string record; log->next(record);) {
    }
    log->cut();
    log->append("new");
  }
  records.back() = "new";
  CHECK(read() == records);
}

TEST_CASE(
    "log file: bytes of a record that may change are what was last put there, and all behind them "
    "counts") {
  const TempFolder folder;
  const std::string path = folder / "log";
  constexpr std::size_t kBytes = 5000;
  const auto read = [&] {
    std::vector<std::string> out;
    const auto log = LogFile::open(path);
    for (LogFile::Place at = log->place();; at = log->place()) {
      std::string record;
      if (!log->next(record)) return out;
      out.emplace_back(record.front() == 'm' ? LogFile::changing_of(record, at) : record);
    }
  };
  {
    const auto log = LogFile::create(path);
    log->append("first");
    const LogFile::Mapped changing = log->append_changing('m', kBytes);
    REQUIRE(changing.bytes.size() == kBytes);
    CHECK(reinterpret_cast<std::uintptr_t>(changing.bytes.data()) % 64 == 0);
    log->append("last");
    changing.bytes.front() = std::byte{'a'};
    changing.bytes.back() = std::byte{'z'};
  }
  const std::string changed = "a" + std::string(kBytes - 2, '\0') + "z";
  CHECK(read() == std::vector<std::string>{"first", changed, "last"});
  // The checksum covers a record's length.
  const std::string bytes = read_bytes(path);
  for (const std::size_t at : {31, 32, 33, 34}) {
    CAPTURE(at);
    std::string spoiled = bytes;
    spoiled[at] = static_cast<char>(spoiled[at] ^ 1);
    folder.write("log", spoiled);
    CHECK(read() == std::vector<std::string>{"first"});
  }
}

}  // namespace melflow::test::resume_test
