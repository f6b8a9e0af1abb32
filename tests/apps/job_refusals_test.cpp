// What plan, work and merge refuse, and what they repair: missing, damaged or foreign parts,
// changed inputs, programs that would write other bytes, workers that are gone.
#include <doctest/doctest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "apps/job/checked_json.h"
#include "apps/job/claims.h"
#include "apps/job/job.h"
#include "tests/apps/pipelines.h"
#include "tests/apps/process.h"
#include "tests/support/audio_files.h"

namespace melflow::test::job_refusals_test {

using Json = nlohmann::ordered_json;
namespace fs = std::filesystem;

namespace {

constexpr std::size_t kParts = 4;

// A corpus of 12 recordings, the output of one machine, and a job of four parts.
struct Example {
  TempFolder folder;
  std::string expected;

  explicit Example(int bands = 20) {
    fs::create_directories(folder / "data");
    for (unsigned i = 0; i < 12; ++i)
      test::write_wav(folder / fmt::format("data/{:02}.wav", i), 30000, 8000, i);
    write_text(
        folder / "p.yaml",
        test::nodes_to_mel("root: data", fmt::format("sample_rate: 8000, n_fft: 256, hop: 80, "
                                                     "n_mels: {}",
                                                     bands)) +
            "  write: {stage: hdf5_write, from: mel, path: out.h5, statistics: all}\n");
    exits(0, melflow_in(folder, {"run", "p.yaml", "-q"}));
    expected = test::read_text(folder / "out.h5");
    fs::remove(folder / "out.h5");
    plan();
  }
  void plan(const std::string& part = "170KiB") const {
    exits(0, melflow_in(folder, {"plan", "p.yaml", "--part", part, "-o", "job"}));
    REQUIRE(Job::read(folder / "job").parts.size() == kParts);
  }
  [[nodiscard]] Ended work(const std::string& patience = "60s") const {
    return melflow_in(folder, {"work", "job", "-q", "--patience", patience});
  }
  [[nodiscard]] Ended merge() const { return melflow_in(folder, {"merge", "job", "-q"}); }
  void check_mends() const {
    exits(0, work());
    exits(0, merge());
    CHECK((test::read_text(folder / "out.h5") == expected));
    fs::remove(folder / "out.h5");
  }
};

void spoil(const std::string& path, std::uintmax_t at) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekg(static_cast<std::streamoff>(at));
  const int byte = file.get();
  file.seekp(static_cast<std::streamoff>(at));
  file.put(static_cast<char>(byte ^ 1));
}

}  // namespace

TEST_CASE("job: parts that are missing are named, and made") {
  const Example example;
  CHECK(has(exits(1, example.merge()).err, "of 4 parts 4 are not done: 0000 to 0003"));
  REQUIRE(example.work().code == 0);
  fs::remove(example.folder / "job/done/0002.json");
  CHECK(has(exits(1, example.merge()).err, "of 4 parts 1 is not done: 0002"));
  CHECK(!fs::exists(example.folder / "out.h5"));
  example.check_mends();
  fs::remove(example.folder / "job/parts/0001.h5");
  CHECK(has(exits(1, example.merge()).err, "job/parts/0001.h5: cannot be read"));
  example.check_mends();
}

TEST_CASE("job: what has no end in place of one of its files is refused at once") {
  const Example example;
  REQUIRE(example.work().code == 0);
  struct Row {
    const char *file, *verb;
  };
  const Row rows[] = {{"job.json", "status"},      {"job.json", "work"},
                      {"job.json", "merge"},       {"done/0002.json", "status"},
                      {"done/0002.json", "merge"}, {"parts/0001.h5", "merge"}};
  for (const auto& [kind, device] : {std::pair("a FIFO", ""), {"a device", "/dev/zero"}}) {
    for (const Row& row : rows) {
      const std::string path = example.folder / (std::string("job/") + row.file);
      REQUIRE(fs::exists(path));
      fs::rename(path, path + ".kept");
      if (*device == '\0')
        REQUIRE(mkfifo(path.c_str(), 0600) == 0);
      else
        fs::create_symlink(device, path);
      // Without these limits a defect would wait for ever, or take all memory.
      const Ended e =
          test::run(example.folder, {"/bin/sh", "-c",
                                     std::string("ulimit -v 8000000; exec timeout 20 ") +
                                         MELFLOW_PROGRAM + " " + row.verb + " job"});
      CHECK_MESSAGE(e.code != 124, std::string(row.verb)
                                       << ", " << std::string(row.file) << " waits");
      CHECK_MESSAGE(
          has(e.out + e.err, fmt::format("job/{}: this is {}, not a file", row.file, kind)),
          std::string(row.verb) << ", " << std::string(row.file) << ": " << e.out << e.err);
      fs::remove(path);
      fs::rename(path + ".kept", path);
    }
  }
  example.check_mends();
}

TEST_CASE("job: a part that is damaged anywhere is named, and made again when it is removed") {
  const Example example;
  REQUIRE(example.work().code == 0);
  const std::string part = example.folder / "job/parts/0001.h5";
  const std::string whole = test::read_text(part);
  for (const std::uintmax_t at : {std::uintmax_t{0}, std::uintmax_t{3000}, std::uintmax_t{66000},
                                  std::uintmax_t{whole.size() - 1}}) {
    CAPTURE(at);
    spoil(part, at);
    const Ended merged = exits(1, example.merge());
    CHECK(has(merged.err, "job/parts/0001.h5: this file is damaged: its bytes are not those"));
    CHECK(!fs::exists(example.folder / "out.h5"));
    CHECK(!fs::exists(example.folder / "out.h5.part"));
    CHECK(!fs::exists(example.folder / "out.h5.journal"));
    spoil(part, at);
  }
  fs::resize_file(part, whole.size() - 7);
  const Ended cut = exits(1, example.merge());
  CHECK(has(cut.err, "job/parts/0001.h5: this file is damaged: it has "));
  CHECK(has(cut.err, fmt::format("; remove it, then `melflow work {}` makes it again\n",
                                 example.folder / "job")));
  example.check_mends();  // detected by its size alone
  spoil(part, 70000);
  fs::remove(part);
  example.check_mends();
  const std::string record = example.folder / "job/done/0003.json";
  spoil(record, 40);
  CHECK(has(exits(1, example.merge()).err, "job/done/0003.json: this file is damaged"));
  example.check_mends();
}

TEST_CASE("job: a part of another plan is named, by its record or by its bytes") {
  const Example example, other(21);
  REQUIRE(example.work().code == 0);
  REQUIRE(other.work().code == 0);
  const auto take = [&](const char* name) {
    fs::copy_file(other.folder / name, example.folder / name, fs::copy_options::overwrite_existing);
  };
  take("job/parts/0002.h5");
  CHECK(has(exits(1, example.merge()).err, "job/parts/0002.h5: this file is damaged"));
  take("job/done/0002.json");
  CHECK(has(exits(1, example.merge()).err, "job/done/0002.json: this is part 2 of another plan"));
  example.check_mends();
  fs::copy_file(example.folder / "job/done/0001.json", example.folder / "job/done/0002.json",
                fs::copy_options::overwrite_existing);
  CHECK(has(example.merge().err, "job/done/0002.json: this is part 1 of another plan"));
  example.check_mends();
}

TEST_CASE("job: an input that has changed since the plan fails its part, and no other") {
  const Example example;
  const std::string input = example.folder / "data/04.wav";
  const auto time = fs::last_write_time(input);
  fs::last_write_time(input, time + std::chrono::seconds(1));
  const Ended worked = exits(1, example.work());
  CHECK(has(worked.err,
            "part 0001: data/04.wav: this file is not what was planned with: then 60044 bytes"));
  CHECK(has(worked.err, "plan again"));
  fs::last_write_time(
      input, std::chrono::file_clock::from_sys(std::chrono::sys_time<std::chrono::milliseconds>(
                 std::chrono::milliseconds(-500))));
  CHECK(has(example.work().err, "now 60044 bytes, changed at 1969-12-31 23:59:59.500000000 UTC"));
  fs::last_write_time(input, time + std::chrono::seconds(1));
  const Ended status = melflow_in(example.folder, {"status", "job", "--json"});
  const Json json = Json::parse(status.out);
  CHECK(json["done"] == 3);
  REQUIRE(json["failed"].size() == 1);
  CHECK(json["failed"][0]["part"] == 1);
  CHECK(has(json["failed"][0]["error"], "data/04.wav"));
  CHECK(has(melflow_in(example.folder, {"status", "job"}).out, "part 0001 failed: data/04.wav"));
  fs::rename(input, example.folder / "away.wav");
  CHECK(has(example.work().err, "now not there, or no file"));
  fs::rename(example.folder / "away.wav", input);
  fs::last_write_time(input, time);
  example.check_mends();
  CHECK(fs::is_empty(example.folder / "job/failed"));
}

TEST_CASE("job: a program that would make other bytes refuses before it computes anything") {
  const Example example;
  Job job = Job::read(example.folder / "job");
  for (auto& [name, value] : job.row_facts)
    if (name == "instruction set") value = "abacus";
  job.write();
  const Ended worked = exits(1, example.work());
  CHECK(has(worked.err, "it was made with another instruction set (abacus, now "));
  const Ended merged = exits(1, example.merge());
  CHECK(has(merged.err, "its parts were made with instruction set abacus, and this is "));
  CHECK(!fs::exists(example.folder / "out.h5"));
  CHECK(fs::is_empty(example.folder / "job/parts"));
  CHECK(fs::is_empty(example.folder / "job/work"));
  CHECK(!fs::exists(example.folder / "job/claims/0000.json"));
}

TEST_CASE("job: what was planned is not changed by hand") {
  struct Row {
    const char* file;
    std::uintmax_t at;
    const char* message;
  };
  for (const Row& row :
       {Row{"job.json", 30, "job.json: this file is damaged"},
        Row{"pipeline.yaml", 90, "pipeline.yaml: has changed since it was planned"},
        Row{"manifest.jsonl", 300, "manifest.jsonl: this file is not what `melflow plan` wrote"}}) {
    CAPTURE(row.file);
    const Example example;
    spoil(example.folder / (std::string("job/") + row.file), row.at);
    const Ended worked = exits(1, example.work());
    CHECK(has(worked.err, row.message));
  }
  // An additional line is noticed even by programs that read none of it.
  const Example example;
  REQUIRE(example.work().code == 0);
  std::ofstream(example.folder / "job/manifest.jsonl", std::ios::app) << "{}\n";
  for (const char* verb : {"status", "work", "merge"}) {
    const Ended ended = melflow_in(example.folder, {verb, "job"});
    CHECK(ended.code != 0);
    CHECK(has(ended.err, "manifest.jsonl: has changed since it was planned"));
  }
}

TEST_CASE("job: a claim of a worker that is gone is taken over, one that lives is left alone") {
  const Example example;
  const Job job = Job::read(example.folder / "job");
  const auto claim = [&](std::size_t part, const std::string& worker) {
    return write_new(job.in("claims/" + job.name(part) + ".json"),
                     {{"worker", worker}, {"work", job.name(part) + "." + worker}},
                     job.in("workers/x"));
  };
  const auto sign = [&](const std::string& worker, int number, const std::string& boot) {
    write_checked(job.in("workers/" + worker + ".json"),
                  {{"number", number}, {"machine", "m"}, {"boot", boot}}, "x");
  };
  using Seconds = Claims::Seconds;
  // A worker of another machine: only patience tells that it is gone.
  REQUIRE(claim(0, "far"));
  sign("far", 1, "another boot");
  Claims patient(job, "patient", Seconds(3600)), impatient(job, "impatient", Seconds(0));
  CHECK(!patient.take(0));
  CHECK(impatient.take(0)->work == "0000.impatient");
  CHECK(!patient.take(0));
  CHECK(Claims::read(job, 0)->worker == "impatient");
  // The same for a worker without a heartbeat, and for an incomplete claim.
  REQUIRE(claim(1, "nobody"));
  write_text(job.in("claims/0002.json"), "{\"wor");
  for (const std::size_t part : {1U, 2U}) {
    CHECK(!patient.take(part));
    CHECK(impatient.take(part).has_value());
  }
  // A worker of this machine that has ended: taken over at once, with its work.
  REQUIRE(claim(3, "near"));
  sign("near", 1, RunJournal::boot_now());
  write_text(job.in("workers/near.lock"), "");
  CHECK(patient.take(3)->work == "0003.near");
  CHECK(!fs::exists(job.in("workers/near.json")));
  // Partial work is continued under its name.
  patient.leave(3, "0003.near");
  CHECK(!Claims::read(job, 3));
  CHECK(impatient.take(3)->work == "0003.near");
  impatient.give_up(3);
  CHECK(impatient.take(3)->work == "0003.impatient");
  // A worker of this machine that lives.
  const WorkerSign me(job);
  const_cast<WorkerSign&>(me).give(WorkerSign::At{0, 1, 3});
  impatient.give_up(0);
  REQUIRE(claim(0, me.id()));
  CHECK(!patient.take(0));
  const Json json = Json::parse(melflow_in(example.folder, {"status", "job", "--json"}).out);
  CHECK(json["running"][0]["worker"] == me.id());
  CHECK(json["running"][0]["files"] == 1);
  CHECK(json["running"][0]["gone"] == false);
}

TEST_CASE(
    "job: workers wait for a worker that is silent, and then make its part; all do so at once") {
  const Example example;
  const Job job = Job::read(example.folder / "job");
  write_new(job.in("claims/0002.json"), {{"worker", "far"}, {"work", "0002.far"}},
            job.in("workers/x"));
  std::vector<std::unique_ptr<test::Process>> workers;
  std::vector<std::unique_ptr<TempFolder>> places;
  for (int i = 0; i < 3; ++i)
    workers.push_back(std::make_unique<test::Process>(
        *places.emplace_back(std::make_unique<TempFolder>()),
        std::vector<std::string>{MELFLOW_PROGRAM, "work", example.folder / "job", "-q",
                                 "--patience", "200ms"}));
  for (const auto& worker : workers) {
    exits(0, worker->wait());
  }
  for (const char* name : {"claims", "work", "workers", "failed"})
    CHECK_MESSAGE(fs::is_empty(job.in(name)), name);
  example.check_mends();
}

TEST_CASE("job: two workers that make one part at the same time do no harm") {
  const Example example;
  const Job job = Job::read(example.folder / "job");
  REQUIRE(example.work().code == 0);
  const std::string part = test::read_text(job.part_path(1));
  const auto record = PartRecord::read(job, 1);
  // The second one ends after the first.
  fs::remove(job.done_path(1));
  REQUIRE(example.work().code == 0);
  CHECK((test::read_text(job.part_path(1)) == part));
  CHECK(PartRecord::read(job, 1)->hash == record->hash);
  example.check_mends();
}

TEST_CASE("merge: one that cannot begin leaves nothing") {
  const Example job;
  REQUIRE(job.work().code == 0);
  write_text(job.folder / "out.h5.part", "precious");
  const Names before = names_in(job.folder.path());
  CHECK(has(exits(1, job.merge()).err, "out.h5.part: this exists already and is not melflow's"));
  CHECK(names_in(job.folder.path()) == before);
  CHECK(test::read_text(job.folder / "out.h5.part") == "precious");
  fs::remove(job.folder / "out.h5.part");
  job.check_mends();
}

TEST_CASE("plan: what cannot be a job is refused, and nothing is written") {
  const TempFolder folder;
  fs::create_directories(folder / "data");
  test::write_wav(folder / "data/a.wav", 4000, 8000, 1);
  const std::string nodes =
      test::nodes_to_mel("root: data", "sample_rate: 8000, n_fft: 256, hop: 80");
  const std::string write = "  write: {stage: hdf5_write, from: mel, path: out.h5}\n";
  write_text(folder / "two.yaml",
             nodes + write + "  more: {stage: npy_write, from: mel, path: out.npy}\n");
  write_text(folder / "sound.yaml",
             nodes + "  sound: {stage: audio_write, from: decode, path: sound}\n" + write);
  write_text(folder / "synthetic.yaml",
             "version: 1\ngraph:\n  files: {stage: synthetic, count: 3}\n"
             "  segment: {stage: segment, from: files}\n  batch: {stage: batch, from: segment}\n"
             "  mel: {stage: mel, from: batch}\n" +
                 write);
  write_text(folder / "one.yaml", nodes + write);
  struct Row {
    std::vector<std::string> arguments;
    int code;
    const char* message;
  };
  for (const Row& row :
       {Row{{"plan", "two.yaml", "-o", "job"}, 1, "a job has one output of rows"},
        Row{{"plan", "sound.yaml", "-o", "job"}, 1, "a job has one output of rows"},
        Row{{"plan", "synthetic.yaml", "-o", "job"}, 1, "a job takes those of a file_list"},
        Row{{"plan", "one.yaml", "-o", "job", "--part", "0"},
            2,
            "--part: a part has at least a byte"},
        Row{{"work", "."}, 1, ".: there is no job.json in it, so it is not the folder of a job"},
        Row{{"work", "job", "--patience", "5x"}, 2, "is not a time such as"}}) {
    CAPTURE(row.message);
    const Ended ended = exits(row.code, melflow_in(folder, row.arguments));
    CHECK(has(ended.err, row.message));
    CHECK(!fs::exists(folder / "job"));
  }
  REQUIRE(melflow_in(folder, {"plan", "one.yaml", "-o", "job"}).code == 0);
  const Ended again = exits(1, melflow_in(folder, {"plan", "one.yaml", "-o", "job"}));
  CHECK(has(again.err, "there is a job already"));
  fs::create_directory(folder / "full");
  test::write_text(folder / "full/a.wav", "a recording");
  const Ended full = exits(1, melflow_in(folder, {"plan", "one.yaml", "-o", "full"}));
  CHECK(has(full.err, "full: this folder has something in it; a job needs a new or an empty one"));
  CHECK_FALSE(fs::exists(folder / "full/parts"));
  // What a plan that was killed leaves is no obstacle to the same command, but a worker's file is.
  for (const char* name : {"ended/parts", "ended/done", "ended/work"})
    fs::create_directories(folder / name);
  test::write_text(folder / "ended/pipeline.yaml", "version");
  test::write_text(folder / "ended/job.json.plan", "{");
  test::write_text(folder / "ended/work/0000.h5.part", "rows");
  const Ended taken = exits(1, melflow_in(folder, {"plan", "one.yaml", "-o", "ended"}));
  CHECK(has(taken.err, "ended: this folder has something in it"));
  fs::remove(folder / "ended/work/0000.h5.part");
  exits(0, melflow_in(folder, {"plan", "one.yaml", "-o", "ended"}));
  exits(0, melflow_in(folder, {"work", "ended"}));
}

}  // namespace melflow::test::job_refusals_test
