// The limits of hand-made runs. The calculation of the expected figures is beside each: a run takes
// ten seconds for 1,000 files, so 100 files/s, and a stage's ceiling is its slots over its busy
// seconds times 1,000.
#include "apps/profile/limits.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "apps/profile/tuning.h"
#include "apps/report/limits_text.h"

namespace melflow::limits_test {
namespace {

constexpr double kSeconds = 10;

struct StageOf {
  std::string name;
  int slots;
  double busy, cpu;  // of all slots [s]
  bool on_workers = true;
  ConcurrencyOption option = {};
};

StageReport stage_of(const StageOf& s) {
  StageReport out;
  out.name = s.name;
  out.stage = s.name;
  out.concurrency = s.slots;
  out.on_workers = s.on_workers;
  out.option = s.option;
  out.time.busy = s.busy;
  out.time.waiting_input = s.slots * kSeconds - s.busy;
  out.cpu_seconds = s.cpu;
  return out;
}

// files → read → mel → write, on four workers and four cores.
RunReport run_of(const std::vector<StageOf>& stages, std::size_t files = 1000) {
  RunReport r;
  r.graph_seconds = kSeconds;
  r.wall_seconds = kSeconds;
  r.workers = r.cores = 4;
  r.counts = {.found = files, .ok = files};
  r.memory_budget = std::size_t{256} << 20;
  r.stages.push_back(stage_of({"files", 1, 0.1, 0.1}));
  for (const StageOf& s : stages) {
    r.edges.push_back({.from = r.stages.back().name, .to = s.name, .capacity = 4});
    r.stages.push_back(stage_of(s));
  }
  return r;
}

StageReport& stage(RunReport& r, const std::string& name) {
  for (StageReport& s : r.stages)
    if (s.name == name) return s;
  throw std::out_of_range(name);
}

constexpr ConcurrencyOption kFollows{.follows_workers = true};

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

using Sets = std::vector<std::pair<std::string, std::string>>;

}  // namespace

TEST_CASE("limits: a stage with too few slots, up to what the cores then allow") {
  // mel: 1 slot, 9.8 s: 102 files/s. Cores: 4 / 13.9 s: 288. Three slots would make 306.
  const Limits l =
      find_limits(run_of({{"read", 4, 2, 1}, {"mel", 1, 9.8, 9.8}, {"write", 1, 3, 3}}));
  CHECK(l.cause == Cause::slots);
  CHECK(l.node == "mel");
  CHECK(l.share == doctest::Approx(0.98));
  CHECK(l.ceilings.front().files_per_second == doctest::Approx(1000 / 9.8));
  REQUIRE(l.hints.size() == 1);
  CHECK(l.hints[0].sets == Sets{{"mel.concurrency", "3"}});
  const double workers = 4 / 14.9 * 1000;
  const double high = std::min(workers, 4 / 13.9 * 1000);
  CHECK(l.hints[0].high == doctest::Approx(high));
  CHECK(l.hints[0].likely == doctest::Approx(0.98 * high));
  CHECK(l.hints[0].low == doctest::Approx((100 + 0.98 * high) / 2));
}

TEST_CASE("limits: a stage that can do one at a time cannot be given more") {
  const Limits l = find_limits(
      run_of({{"read", 4, 2, 1}, {"mel", 1, 9.8, 9.8, true, {.most = 1}}, {"write", 1, 3, 3}}));
  CHECK(l.cause == Cause::slots);
  CHECK(l.hints.empty());
  CHECK(l.nothing_to_gain());
}

TEST_CASE("limits: a node that was not written has no option to change") {
  const Limits l = find_limits(run_of({{"mel", 1, 9.8, 1, true, {.is_settable = false}}}));
  CHECK(l.cause == Cause::slots);
  CHECK(l.hints.empty());
}

TEST_CASE("limits: all cores at work, and nothing to gain") {
  const RunReport r = run_of({{"read", 4, 4, 4}, {"mel", 4, 30, 30}, {"write", 1, 4.5, 4.5}});
  const Limits l = find_limits(r);
  CHECK(l.cause == Cause::cores);
  CHECK(l.share == doctest::Approx(38.6 / 40));
  CHECK(l.heaviest == "mel");
  CHECK(l.heaviest_share == doctest::Approx(30 / 38.6));
  CHECK(l.nothing_to_gain());
  CHECK(limits_text(l, r) ==
        "limited by: the processor: 96% of what 4 cores can do; 78% of the work is mel\n"
        "would help: no option; only less work, or a faster machine\n");
}

TEST_CASE("limits: compression takes most of the time: a lower level, or none") {
  RunReport r = run_of({{"mel", 4, 4, 4, true, kFollows}, {"write", 4, 33, 33, true, kFollows}});
  const auto packed = [](const char* seconds, const char* size) {
    Value map = Value::map({});
    map.set("seconds", Value::scalar(seconds));
    map.set("size", Value::scalar(size));
    return map;
  };
  Value packing = packed("30", "0.64");
  packing.set("level", Value::scalar("9"));
  packing.set("level_1", packed("8", "0.672"));
  stage(r, "write").summary = {{"packing", packing}};
  // 37.1 s, of which level 1 saves 22.
  Limits l = find_limits(r);
  CHECK(l.cause == Cause::cores);
  REQUIRE(l.hints.size() == 1);
  CHECK(l.hints[0].sets == Sets{{"write.level", "1"}});
  CHECK(l.hints[0].likely == doctest::Approx(100 * 37.1 / 15.1));
  CHECK(l.hints[0].output_size == doctest::Approx(1.05));
  CHECK_FALSE(l.nothing_to_gain());
  CHECK(has(limits_text(l, r),
            "would help: write.level: 1 → about 246 files/s (173 to 265), now "
            "100; the same rows in a file 5.0% larger\n"));
  CHECK(limits_json(l)["hints"][0]["output_size"] == doctest::Approx(1.05));
  // With level 1 set already, the only cheaper value is no compression.
  packing = packed("30", "0.64");
  packing.set("level", Value::scalar("1"));
  packing.set("level_1", packed("30", "0.64"));
  stage(r, "write").summary = {{"packing", packing}};
  l = find_limits(r);
  REQUIRE(l.hints.size() == 1);
  CHECK(l.hints[0].sets == Sets{{"write.compression", "none"}});
  CHECK(l.hints[0].likely == doctest::Approx(100 * 37.1 / 7.1));
  CHECK(l.hints[0].output_size == doctest::Approx(1 / 0.64));
  // A node that was inserted has no option, and where little is compressed, little is gained.
  stage(r, "write").option.is_settable = false;
  CHECK(find_limits(r).nothing_to_gain());
  stage(r, "write").option.is_settable = true;
  packing.set("seconds", Value::scalar("1"));
  stage(r, "write").summary = {{"packing", packing}};
  CHECK(find_limits(r).nothing_to_gain());
}

TEST_CASE("limits: batches that wait for who takes them are no lack of memory or workers") {
  RunReport r = run_of({{"mel", 4, 8, 8}, {"train", 1, 9.8, 1}});
  CHECK(find_limits(r).cause != Cause::program);
  const double seconds = r.graph_seconds;
  stage(r, "train").summary = {
      {"waiting_for_program", Value::scalar(std::to_string(0.8 * seconds))}};
  const Limits l = find_limits(r);
  CHECK(l.cause == Cause::program);
  CHECK(limits_json(l)["cause"] == "program");
  CHECK(limits_text(l, r) ==
        "limited by: the program that takes the batches of train: they waited for it 80% of the "
        "time\n");
  stage(r, "train").summary = {
      {"waiting_for_program", Value::scalar(std::to_string(0.4 * seconds))}};
  CHECK(find_limits(r).cause != Cause::program);
}

TEST_CASE("limits: waiting until all is on disk is what an option asks for") {
  RunReport r = run_of({{"mel", 4, 8, 8}, {"write", 4, 2, 2}});
  r.wall_seconds = 40;
  r.finish_seconds = 28;
  CHECK(find_limits(r).cause == Cause::closing);
  CHECK_FALSE(has(limits_text(find_limits(r), r), "would help"));
  stage(r, "write").summary = {{"sync_seconds", Value::scalar("26")}};
  const Limits l = find_limits(r);
  CHECK(limits_text(l, r) ==
        "limited by: closing and checking the output: 70% of the time\n"
        "would help: write.sync: false → saves 65% of the time; where the machine fails soon after "
        "the run, the output may then be lost\n");
  CHECK(limits_json(l)["sync"]["set"]["write.sync"] == "false");
  // Too little of it, or not the limit.
  stage(r, "write").summary = {{"sync_seconds", Value::scalar("2")}};
  CHECK(limits_json(find_limits(r))["sync"].is_null());
  stage(r, "write").summary = {{"sync_seconds", Value::scalar("9")}};
  r.finish_seconds = 10;
  CHECK(limits_json(find_limits(r))["sync"].is_null());
}

TEST_CASE("limits: an option that would change the rows is no remedy, and said to be none") {
  RunReport r = run_of({{"rate", 4, 30, 30}, {"mel", 4, 8.5, 8.5}});
  stage(r, "rate").stage = "resample";
  CHECK(has(limits_text(find_limits(r), r),
            "would help: no option; only less work, or a faster machine (rate.quality would change "
            "the rows)\n"));
}

TEST_CASE("limits: where decoding is most of the work, stored samples would help later runs") {
  RunReport r = run_of({{"dec", 4, 20, 20}, {"res", 4, 8, 8}, {"mel", 4, 10, 10}});
  stage(r, "files").stage = "file_list";
  stage(r, "dec").stage = "decode";
  stage(r, "res").stage = "resample";
  const auto text = [&] { return limits_text(find_limits(r), r); };
  // 28 s of 38.1.
  const char* const cache =
      "would help: files.feed: cache with files.cache_path: FOLDER → later runs of the same files "
      "save dec and res, 73% of the work\n";
  CHECK(has(text(), cache));
  const auto json = limits_json(find_limits(r));
  CHECK_FALSE(json["nothing_to_gain"].get<bool>());
  CHECK(json["reuse"]["set"] == nlohmann::ordered_json{{"files.feed", "cache"}});
  CHECK(json["reuse"]["stages"] == nlohmann::ordered_json{"dec", "res"});
  CHECK(json["reuse"]["share"].get<double>() == doctest::Approx(28 / 38.1));
  stage(r, "mel").cpu_seconds = 28;  // 28 s of 56.1
  CHECK(has(text(), "would help: no option"));
  CHECK(limits_json(find_limits(r))["reuse"].is_null());
  stage(r, "mel").cpu_seconds = 27;  // 28 s of 55.1
  CHECK(has(text(), "51% of the work"));
  stage(r, "files").summary = {{"feed", Value::scalar("cache")}};
  CHECK_FALSE(has(text(), "cache"));
  // Another kind of source has no such option.
  stage(r, "files").summary.clear();
  stage(r, "files").stage = "synthetic";
  CHECK_FALSE(has(text(), "cache"));
}

TEST_CASE("limits: fewer workers than cores") {
  // Two workers: 19.1 s of 20. With four: cores 4 / 19.1 s: 209 files/s.
  RunReport r = run_of({{"read", 2, 4, 4, true, kFollows}, {"mel", 2, 15, 15, true, kFollows}});
  r.workers = 2;
  const Limits l = find_limits(r);
  CHECK(l.cause == Cause::workers);
  CHECK(l.share == doctest::Approx(19.1 / 20));
  REQUIRE(l.hints.size() == 1);
  CHECK(l.hints[0].sets == Sets{{"workers", "4"}});
  CHECK(l.hints[0].high == doctest::Approx(4000 / 19.1));
}

TEST_CASE("limits: where other programs have the cores, a hint promises less") {
  RunReport r = run_of({{"read", 2, 4, 4, true, kFollows}, {"mel", 2, 15, 9, true, kFollows}});
  r.workers = 2;
  r.core_wait_seconds = 3;  // of 16.1 s
  const Limits calm = find_limits(r);
  REQUIRE(calm.hints.size() == 1);
  r.core_wait_seconds = 6;  // of 19.1 s
  const Limits disturbed = find_limits(r);
  CHECK(disturbed.taken_share == doctest::Approx(6 / 19.1));
  REQUIRE(disturbed.hints.size() == 1);
  CHECK(disturbed.hints[0].sets == calm.hints[0].sets);
  CHECK(disturbed.hints[0].low == doctest::Approx(100));
  CHECK(disturbed.hints[0].likely == doctest::Approx(calm.hints[0].low));
  CHECK(disturbed.hints[0].high == doctest::Approx(calm.hints[0].high));
  // With more workers than cores, workers compete with each other.
  r.workers = 8;
  CHECK(find_limits(r).taken_share == 0);
}

TEST_CASE("limits: one worker and one slot: both are needed") {
  RunReport r = run_of({{"mel", 1, 9.7, 9.7}});
  r.workers = 1;
  const Limits l = find_limits(r);
  CHECK(l.cause == Cause::workers);
  REQUIRE_FALSE(l.hints.empty());
  CHECK(l.hints[0].sets == Sets{{"workers", "4"}, {"mel.concurrency", "4"}});
}

TEST_CASE("limits: workers that wait inside of a stage: more of them than there are cores") {
  // 39.1 s in stages, in 10.1 of which a core worked: 4 / 0.258 = 15.5.
  const RunReport r =
      run_of({{"fetch", 4, 30, 1, true, kFollows}, {"mel", 4, 9, 9, true, kFollows}});
  const Limits l = find_limits(r);
  CHECK(l.cause == Cause::workers);
  REQUIRE_FALSE(l.hints.empty());
  CHECK(l.hints[0].sets == Sets{{"workers", "16"}});
  CHECK(l.hints[0].high == doctest::Approx(4000 / 10.1));  // cores: 396; workers: 409
  CHECK(has(limits_text(l, r),
            "limited by: the workers: 4 of them, in stages 98% of the time, "
            "where they wait more than they compute\n"));
}

TEST_CASE("limits: the same with cores that other programs had: more workers would not help") {
  RunReport r = run_of({{"fetch", 4, 30, 1, true, kFollows}, {"mel", 4, 9, 9, true, kFollows}});
  r.core_wait_seconds = 28;
  const Limits l = find_limits(r);
  CHECK(l.cause == Cause::cores);
  CHECK(l.hints.empty());
  CHECK(has(limits_text(l, r), "\n            other programs had the cores for 73% of the time"));
}

TEST_CASE("limits: Python's lock, which other processes do not need") {
  // Two workers of four cores: of 19 s in the function, 9.5 s are waiting for the lock.
  RunReport r = run_of({{"f", 2, 19, 9.5, true, kFollows}, {"write", 1, 0.5, 0.5}});
  r.workers = 2;
  const auto lock = [&](const char* held, const char* importable) {
    Value out = Value::map({});
    out.set("looks", Value::scalar("500"));
    out.set("held", Value::scalar(held));
    out.set("importable", Value::scalar(importable));
    stage(r, "f").summary = {{"lock", std::move(out)}};
    return find_limits(r);
  };
  Limits l = lock("480", "true");
  CHECK(l.cause == Cause::lock);
  CHECK(l.node == "f");
  CHECK(l.share == doctest::Approx(0.96));
  REQUIRE(l.hints.size() == 1);
  CHECK(l.hints[0].sets == Sets{{"f.processes", "4"}});
  CHECK(l.hints[0].high == doctest::Approx(4 / 10.1 * 1000));  // 4 cores
  const std::string held =
      "limited by: Python's lock (GIL): functions hold it 96% of the time, most of all f\n";
  CHECK(has(limits_text(l, r), held + "would help: f.processes: 4 → about "));
  CHECK(limits_json(l)["cause"] == "lock");
  CHECK(has(ceilings_text(l, r), "96% used  Python's lock (GIL), held most of all by f\n"));
  l = lock("480", "false");
  CHECK(limits_text(l, r) ==
        held + "would help: f.processes, of a function that can be imported (MODULE:NAME)\n");
  CHECK(lock("350", "true").cause == Cause::lock);
  CHECK(lock("50", "true").cause == Cause::workers);
  CHECK(lock("0", "true").cause == Cause::workers);
}

TEST_CASE("limits: functions in other processes, of which a core has one at a time") {
  struct Calls {
    int at_once;
    double seconds, cpu, core_wait;
    const char* importable = "true";
  };
  RunReport r;
  const auto limits = [&](const Calls& c) {
    // The runner adds the processor time of other processes to that of the stage.
    r = run_of({{"f", c.at_once, 40, c.cpu + 0.1, false}, {"write", 1, 0.5, 0.5}});
    Value calls = Value::map({});
    calls.set("at_once", Value::scalar(std::to_string(c.at_once)));
    calls.set("seconds", Value::scalar(std::to_string(c.seconds)));
    calls.set("cpu_seconds", Value::scalar(std::to_string(c.cpu)));
    calls.set("core_wait_seconds", Value::scalar(std::to_string(c.core_wait)));
    calls.set("importable", Value::scalar(c.importable));
    stage(r, "f").summary = {{"calls", std::move(calls)}};
    r.core_wait_seconds = c.core_wait;
    return find_limits(r);
  };
  // Two processes at work for 19.8 of 20 s: 2 / 19.8 ms. Four: 4 cores / (19 + 0.1 + 0.6) ms.
  Limits l = limits({2, 19.8, 19, 0});
  CHECK(l.cause == Cause::slots);
  CHECK(l.share == doctest::Approx(0.99));
  REQUIRE(l.hints.size() == 1);
  CHECK(l.hints[0].sets == Sets{{"f.processes", "4"}});
  CHECK(l.hints[0].high == doctest::Approx(4000 / 19.8));
  CHECK(has(limits_text(l, r), "limited by: f: 2 calls at once, at work 99% of the time\n"));
  // As many as there are cores.
  l = limits({4, 39.6, 39, 0});
  CHECK(l.cause == Cause::cores);
  CHECK(l.heaviest == "f");
  CHECK(l.hints.empty());
  CHECK(l.nothing_to_gain());
  // Other programs had the cores; more processes would have no more of them.
  l = limits({4, 39.6, 20, 19});
  CHECK(l.cause == Cause::cores);
  CHECK(l.hints.empty());
  CHECK(l.taken_share == doctest::Approx(19 / (20 + 0.1 + 0.6 + 19)));
  // More processes than cores compete with each other.
  CHECK(limits({8, 79, 39, 39}).taken_share == 0);
  CHECK(limits({8, 79, 39, 39}).hints.empty());
  // What waits for something else needs no core.
  l = limits({4, 39.6, 2, 0});
  CHECK(l.cause == Cause::slots);
  REQUIRE(l.hints.size() == 1);
  CHECK(l.hints[0].sets.front().first == "f.processes");
  // A function that other processes cannot import has its batches one after the other.
  l = limits({1, 9.9, 0, 0, "false"});
  CHECK(l.cause == Cause::slots);
  CHECK(l.hints.empty());
  CHECK(has(limits_text(l, r), "limited by: f: 1 call at once, at work 99% of the time\n"));
}

TEST_CASE("limits: the disk") {
  // read waits 38 of 40 s; half of 4 GB came from the disk.
  RunReport r = run_of({{"read", 4, 39, 1, false}, {"mel", 4, 5, 5}});
  r.bytes_read = 4'000'000'000;
  r.usage.has_disk = true;
  r.usage.disk_read_bytes = 2'000'000'000;
  const Limits l = find_limits(r);
  CHECK(l.cause == Cause::disk);
  CHECK(l.node == "read");
  CHECK(l.share == doctest::Approx(0.95));
  REQUIRE_FALSE(l.hints.empty());
  CHECK(l.hints[0].sets.front().first == "read.concurrency");
  CHECK(l.hints[0].low == doctest::Approx(100));  // the disk may be at its limit
  CHECK(has(limits_text(l, r),
            "limited by: the disk: read waited for it 95% of the time, at 200 MB/s\n"));
  // The bytes came from the page cache, so the run did not wait for the disk.
  r.usage.disk_read_bytes = 0;
  CHECK(find_limits(r).cause == Cause::slots);
  // The system does not count disk reads.
  r.usage.has_disk = false;
  CHECK(find_limits(r).cause == Cause::slots);
}

TEST_CASE("limits: a sink that takes one at a time") {
  const Limits l = find_limits(
      run_of({{"read", 4, 2, 1}, {"mel", 4, 8, 8}, {"write", 1, 9.9, 2, false, {.most = 1}}}));
  CHECK(l.cause == Cause::slots);
  CHECK(l.node == "write");
  CHECK(l.nothing_to_gain());
}

TEST_CASE("limits: memory that files wait for") {
  RunReport r = run_of({{"read", 4, 5, 2}, {"mel", 4, 12, 12}});
  r.memory_wait_seconds = 6;
  const Limits l = find_limits(r);
  CHECK(l.cause == Cause::memory);
  CHECK(l.share == doctest::Approx(0.6));
  REQUIRE(l.hints.size() == 1);
  CHECK(l.hints[0].sets == Sets{{"memory.host", "512MiB"}});
  r.memory_wanted = (std::size_t{1500} << 20) + 1;
  CHECK(find_limits(r).hints.at(0).sets == Sets{{"memory.host", "1501MiB"}});
  CHECK(l.hints[0].likely == doctest::Approx(4000 / 17.1));  // 250, but workers limit it first
  // Where a resource is exhausted, files wait for memory because of that.
  stage(r, "mel").time.busy = stage(r, "mel").cpu_seconds = 33;
  CHECK(find_limits(r).cause == Cause::cores);
}

TEST_CASE("limits: memory that files wait for because of large blocks") {
  RunReport r = run_of({{"decode", 4, 5, 2}, {"mel", 4, 12, 12}});
  r.memory_wait_seconds = 6;
  stage(r, "decode").items_out = 2000;
  stage(r, "decode").bytes_out = 2000 * (std::size_t{512} << 10);
  REQUIRE(find_limits(r).hints.size() == 1);
  stage(r, "decode").bytes_out = 2000 * (std::size_t{9} << 20);
  const Limits l = find_limits(r);
  CHECK(l.cause == Cause::memory);
  REQUIRE(l.hints.size() == 2);
  CHECK(l.hints[0].sets == Sets{{"decode.block", "512KiB"}});  // costs no memory
  CHECK(l.hints[1].sets == Sets{{"memory.host", "512MiB"}});
  CHECK(l.hints[0].likely == l.hints[1].likely);
}

TEST_CASE("limits: a source that waits for memory while it is ahead costs nothing") {
  // All work on the workers takes 34.6 of 40 s: nothing is exhausted. The source waits 1.4 s of 10.
  RunReport r = run_of({{"read", 4, 1.5, 1}, {"mel", 4, 33, 33}});
  r.memory_wait_seconds = 1.4;
  CHECK(find_limits(r).cause == Cause::memory);  // both stages were idle for 7 s of 40
  CHECK(find_limits(r).share == doctest::Approx(0.14));
  for (const char* name : {"read", "mel"}) {
    RunReport fed = r;
    // The stage was idle for only 0.8 s; for the rest it had no worker.
    StageTime& time = stage(fed, name).time;
    time.waiting_core = time.waiting_input - 0.8;
    time.waiting_input = 0.8;
    CAPTURE(name);
    const Limits l = find_limits(fed);
    CHECK(l.cause == Cause::uneven);
    CHECK(l.hints.empty());
  }
  // Where files waited longer than the stage was idle, the stage's idle time counts.
  StageTime& time = stage(r, "mel").time;
  time = {.busy = 33, .waiting_input = 4.8, .waiting_core = 2.2};
  const Limits l = find_limits(r);
  CHECK(l.cause == Cause::memory);
  CHECK(l.share == doctest::Approx(0.12));
  REQUIRE(l.hints.size() == 1);
  CHECK(l.hints[0].likely == doctest::Approx(100 / 0.88));
}

TEST_CASE("limits: a queue that is alternately full and empty") {
  RunReport r = run_of({{"read", 4, 10, 10}, {"mel", 2, 12, 12}});
  stage(r, "read").time = {.busy = 10, .waiting_input = 6, .blocked_output = 24};
  stage(r, "mel").time = {.busy = 12, .waiting_input = 8};
  const Limits l = find_limits(r);
  CHECK(l.cause == Cause::queue);
  CHECK(l.node == "mel");
  CHECK(l.share == doctest::Approx(0.4));
  REQUIRE(l.hints.size() == 1);
  CHECK(l.hints[0].sets == Sets{{"mel.queue", "16"}});
  CHECK(l.hints[0].likely == doctest::Approx(100 / 0.6));
}

TEST_CASE("limits: a node held at one slot is named, though it is not at work all the time") {
  // mel: 1 slot, 6.5 s: 154 files/s. Cores: 4 / 9.6 s: 417; workers: the same.
  RunReport r = run_of({{"read", 4, 3, 3}, {"mel", 1, 6.5, 6.5}});
  stage(r, "read").time = {.busy = 3, .waiting_input = 2, .blocked_output = 35};
  stage(r, "mel").time = {.busy = 6.5, .waiting_input = 2.5, .waiting_core = 1};
  const Limits l = find_limits(r);
  CHECK(l.cause == Cause::slots);
  CHECK(l.node == "mel");
  CHECK(l.share == doctest::Approx(0.65));
  REQUIRE(l.hints.size() == 1);
  CHECK(l.hints[0].sets == Sets{{"mel.concurrency", "3"}});
  CHECK(l.hints[0].likely == doctest::Approx(0.9 * 4 / 9.6 * 1000));
  CHECK(has(limits_text(l, r), "mel: 1 at once, at work 65% of the time"));
  // Not where it cannot have more, or the node before it is not blocked.
  stage(r, "mel").option.most = 1;
  CHECK(find_limits(r).cause == Cause::queue);
  stage(r, "mel").option.most = 0;
  stage(r, "read").time = {.busy = 3, .waiting_input = 37};
  CHECK(find_limits(r).cause != Cause::slots);
  // With more slots it is the queue, unless that is full most of the time.
  stage(r, "read").time = {.busy = 3, .waiting_input = 2, .blocked_output = 35};
  stage(r, "mel").concurrency = 2;
  stage(r, "mel").time = {.busy = 12, .waiting_input = 8};
  stage(r, "mel").cpu_seconds = 12;
  CHECK(find_limits(r).cause == Cause::queue);
  r.edges.back().mean_depth = 3;
  CHECK(find_limits(r).cause == Cause::slots);
}

TEST_CASE("limits: a node held at one slot is named beside other load, too") {
  // Workers come late: mel is at work or waits for one of them 45% of the time, and the queue
  // before it is full for 30%; read has more time at work, as it waits for cores.
  RunReport r = run_of({{"read", 4, 8, 4}, {"mel", 1, 3, 3}});
  r.core_wait_seconds = 4;
  stage(r, "read").time = {.busy = 8, .waiting_input = 16, .blocked_output = 12, .waiting_core = 4};
  stage(r, "mel").time = {.busy = 3, .waiting_input = 5.5, .waiting_core = 1.5};
  Limits l = find_limits(r);
  CHECK(l.cause == Cause::slots);
  CHECK(l.node == "mel");
  REQUIRE(l.hints.size() == 1);
  CHECK(l.hints[0].sets.front().first == "mel.concurrency");
  // The same where it is held, and another node has more time at work.
  stage(r, "mel").time = {.busy = 6, .waiting_input = 3, .waiting_core = 1};
  l = find_limits(r);
  CHECK(l.cause == Cause::slots);
  CHECK(l.node == "mel");
  // With two slots it is the queue.
  stage(r, "mel").concurrency = 2;
  stage(r, "mel").time = {.busy = 6, .waiting_input = 11, .waiting_core = 3};
  CHECK(find_limits(r).cause == Cause::queue);
}

TEST_CASE("limits: of nodes with one slot each, the one that fills the queues is named") {
  // rs fills all queues before it. read waits in turn for input, as a worker that leaves it goes on
  // with what it has made; it is at work 5% of the time.
  RunReport r = run_of({{"read", 1, 0.5, 0.5}, {"decode", 1, 0.2, 0.2}, {"rs", 1, 7, 7}});
  stage(r, "files").time = {.busy = 1.4, .blocked_output = 4.2, .waiting_core = 4.4};
  stage(r, "read").time = {
      .busy = 0.5, .waiting_input = 5.1, .blocked_output = 2.7, .waiting_core = 1.7};
  stage(r, "decode").time = {
      .busy = 0.2, .waiting_input = 6.6, .blocked_output = 1.8, .waiting_core = 1.4};
  stage(r, "rs").time = {.busy = 7, .waiting_input = 2.9, .waiting_core = 0.1};
  Limits l = find_limits(r);
  CHECK(l.cause == Cause::slots);
  CHECK(l.node == "rs");
  CHECK(has(limits_text(l, r), "rs: 1 at once, at work 70% of the time"));
  // Also where other programs have the cores: then none is at work half of the time.
  stage(r, "rs").time = {.busy = 4, .waiting_input = 4.5, .waiting_core = 1.5};
  stage(r, "rs").cpu_seconds = 4;
  l = find_limits(r);
  CHECK(l.cause == Cause::slots);
  CHECK(l.node == "rs");
}

TEST_CASE("limits: the last file") {
  RunReport r = run_of({{"decode", 4, 16, 16}});
  stage(r, "decode").time = {.busy = 16, .waiting_input = 4, .idle_after_end = 20};
  r.slowest = {{"long.flac", "decode", {7, 3, 1}}};
  const Limits l = find_limits(r);
  CHECK(l.cause == Cause::ending);
  CHECK(l.share == doctest::Approx(0.5));
  CHECK(has(limits_text(l, r), "; long.flac was in decode for 7.00 s\n"));
  r.slowest.front().visit.seconds = 2;
  CHECK_FALSE(has(limits_text(find_limits(r), r), "long.flac"));
}

TEST_CASE("limits: the last files, of which there are fewer than slots") {
  // 21.1 of 40 s. Three files are in flight from 4 s on, two from 5 s, one from 6 s to 10 s: of
  // four slots, one is idle for 1 s, two for 1 s and three for 4 s.
  RunReport r = run_of({{"decode", 4, 21, 21}});
  r.last_closings = {1, 2, 4, 5, 6, 10};
  const Limits l = find_limits(r);
  CHECK(l.cause == Cause::ending);
  CHECK(l.node == "decode");
  CHECK(l.share == doctest::Approx(15.0 / 40));
  // Two cores and no stage that waits make two slots; one of them is idle for 4 s of 10.
  r.cores = 2;
  stage(r, "decode").time.busy = stage(r, "decode").cpu_seconds = 15;
  CHECK(find_limits(r).cause == Cause::ending);
  CHECK(find_limits(r).share == doctest::Approx(4.0 / 20));
}

TEST_CASE("limits: what passes between stages takes workers and cores, too") {
  // 19.1 s in stages, and as much outside of them.
  RunReport r = run_of({{"read", 4, 4, 4}, {"mel", 4, 15, 15}});
  CHECK(find_limits(r).cause == Cause::uneven);
  r.graph_cpu_seconds = 38.2;
  stage(r, "mel").service.calls = 1000;  // the rest was spent by idle threads
  CHECK(find_limits(r).cause == Cause::uneven);
  stage(r, "mel").service.calls = 10'000'000;
  const Limits l = find_limits(r);
  CHECK(l.cause == Cause::cores);
  CHECK(l.share == doctest::Approx(38.2 / 40));
  CHECK(l.heaviest_share == doctest::Approx(15 / 19.1));
  // The stages' figures are estimated from samples, and may exceed the process's total.
  r.graph_cpu_seconds = 10;
  CHECK(find_limits(r).ceilings.front().share == doctest::Approx(19.1 / 40));
}

TEST_CASE("limits: audio that is loaded for one run") {
  RunReport r = run_of({{"dec", 4, 1, 1}, {"mel", 4, 38, 38}});
  stage(r, "files").stage = "file_list";
  stage(r, "files").summary = {{"feed", Value::scalar("preload")}};
  r.filling_seconds = 30;
  r.wall_seconds = 40;
  const Limits l = find_limits(r);
  CHECK(l.cause == Cause::loading);
  CHECK(has(limits_text(l, r),
            "or: files.feed: cache with files.cache_path: FOLDER → later runs of the same files "
            "save loading it, 75% of the time\n"));
  // Loading and computing concurrently would take 30 s instead of 40; half of that gain gives 34.3.
  CHECK(l.files_per_second == doctest::Approx(25));
  REQUIRE(l.hints.size() == 1);
  CHECK(l.hints[0].sets == Sets{{"files.feed", "stream"}});
  CHECK(l.hints[0].likely == doctest::Approx(1000.0 / 30));
  CHECK(l.hints[0].low == doctest::Approx((25 + 1000.0 / 30) / 2));
  CHECK(has(limits_text(l, r),
            "limited by: loading the audio first: 75% of the time\n"
            "would help: files.feed: stream → about 33 files/s (29 to 33), now 25\n"));
}

TEST_CASE("limits: audio that is loaded by too few workers") {
  RunReport r = run_of({{"dec", 1, 9, 9}, {"mel", 1, 9.5, 9.5}});
  stage(r, "files").stage = "file_list";
  stage(r, "files").summary = {{"feed", Value::scalar("preload")}};
  r.workers = 1;
  r.filling_seconds = 10;
  r.wall_seconds = 20;
  const Limits l = find_limits(r);
  REQUIRE(l.hints.size() == 2);
  CHECK(l.hints[0].sets == Sets{{"workers", "4"}});
  CHECK(l.hints[0].likely == doctest::Approx(200));
  CHECK(l.hints[1].sets == Sets{{"files.feed", "stream"}});
  CHECK(l.hints[1].likely == doctest::Approx(100));
  // An option of an inserted node cannot be set.
  stage(r, "files").option.is_settable = false;
  CHECK(find_limits(r).hints.size() == 1);
}

TEST_CASE("limits: loading is named from a quarter of the time on, though the cores are used up") {
  RunReport r = run_of({{"mel", 4, 39, 39}});
  r.filling_seconds = 3.5;
  r.wall_seconds = 13.5;
  CHECK(find_limits(r).cause == Cause::loading);
  r.filling_seconds = 3;
  r.wall_seconds = 13;
  CHECK(find_limits(r).cause == Cause::cores);
}

TEST_CASE("limits: fewer files than slots") {
  const RunReport r = run_of({{"decode", 4, 20, 20}}, 2);
  const Limits l = find_limits(r);
  CHECK(l.cause == Cause::few_files);
  CHECK(l.share == doctest::Approx(0.5));
  CHECK(has(limits_text(l, r), "limited by: too few files: 2, where more"));
  // As many files as cores are enough, however many workers there are.
  RunReport crowded = run_of({{"decode", 8, 14, 14}}, 2);
  crowded.workers = 8;
  crowded.cores = 2;
  CHECK(find_limits(crowded).cause == Cause::uneven);
}

TEST_CASE("limits: no more slots than there are files") {
  RunReport r = run_of({{"mel", 1, 9.9, 9.9}}, 3);
  r.workers = r.cores = 8;
  const Limits l = find_limits(r);
  REQUIRE_FALSE(l.hints.empty());
  CHECK(l.hints[0].sets == Sets{{"mel.concurrency", "3"}});
}

TEST_CASE("limits: what passes before and after the stages") {
  struct Row {
    double start, filling, finish;
    Cause cause;
  };
  for (const Row& row : {Row{12, 1, 1, Cause::listing}, Row{1, 12, 1, Cause::loading},
                         Row{1, 1, 12, Cause::closing}, Row{2, 2, 2, Cause::cores}}) {
    RunReport r = run_of({{"mel", 4, 39, 39}});
    r.start_seconds = row.start;
    r.filling_seconds = row.filling;
    r.finish_seconds = row.finish;
    r.wall_seconds = kSeconds + row.start + row.filling + row.finish;
    CAPTURE(row.start);
    CAPTURE(row.finish);
    CHECK(to_text(find_limits(r).cause) == std::string(to_text(row.cause)));
  }
}

TEST_CASE("limits: the time until the first rows") {
  RunReport r = run_of({{"mel", 4, 20, 20}});
  r.start_seconds = 1;
  r.wall_seconds = 11;
  r.first_row_seconds = 5;
  const Limits l = find_limits(r);
  CHECK(l.cause == Cause::beginning);
  CHECK(l.share == doctest::Approx(0.4));
}

TEST_CASE("limits: one batch of all files, before which nothing comes out") {
  // 20.1 of 40 s; the cores would allow 199 files/s.
  RunReport r = run_of({{"batch", 1, 0.1, 0.1}, {"mel", 4, 20, 20}});
  r.first_row_seconds = 8;
  StageReport& batch = stage(r, "batch");
  batch.items_in = 1000;
  batch.items_out = 1;
  const Limits l = find_limits(r);
  CHECK(l.cause == Cause::beginning);
  REQUIRE(l.hints.size() == 1);
  CHECK(l.hints[0].sets == Sets{{"batch.files", "31"}});  // eight for each of four slots
  CHECK(l.hints[0].likely == doctest::Approx(4000 / 20.2));
  batch.items_out = 8;  // two for each
  CHECK(find_limits(r).hints.empty());
}

TEST_CASE("limits: nothing in particular") {
  const RunReport r = run_of({{"read", 4, 10, 10}, {"mel", 4, 12, 12}});
  const Limits l = find_limits(r);
  CHECK(l.cause == Cause::uneven);
  CHECK(l.hints.empty());
  CHECK_FALSE(l.nothing_to_gain());
  CHECK(limits_text(l, r) ==
        "limited by: nothing for long: stages waited for each other; most used was cores, 55% of "
        "the time\n");
}

TEST_CASE("limits: nothing is said of a run in which nothing was done") {
  for (const RunReport& r : {RunReport{}, run_of({{"mel", 4, 20, 20}}, 0), run_of({})}) {
    RunReport idle = r;
    if (idle.stages.size() == 1)
      idle.stages.front().time.busy = idle.stages.front().cpu_seconds = 0;
    const Limits l = find_limits(idle);
    CHECK_FALSE(l.is_known());
    CHECK(limits_text(l, idle).empty());
    CHECK(limits_json(l).is_null());
  }
}

TEST_CASE("limits: what no ceiling is below is the limit, and hints never exceed the ceilings") {
  // Property, over a grid: the named resource has the largest share, or one within 5 % of it; hints
  // have low <= likely <= high, are worthwhile, and are at most three.
  for (const int workers : {1, 2, 4, 8})
    for (const int slots : {1, 2, 4})
      for (const double busy : {0.5, 5.0, 9.5, 19.0, 38.0})
        for (const double cpu_share : {0.1, 0.7, 1.0}) {
          RunReport r = run_of({{"read", 4, 3, 1, true, kFollows},
                                {"mel", slots, busy, busy * cpu_share},
                                {"write", 1, 4, 1, false}});
          r.workers = workers;
          const Limits l = find_limits(r);
          CAPTURE(workers);
          CAPTURE(slots);
          CAPTURE(busy);
          REQUIRE(l.is_known());
          if (l.ceilings.front().share > 1) continue;  // more than available: no run is like that
          double greatest = 0;
          for (const Ceiling& c : l.ceilings) greatest = std::max(greatest, c.share);
          CHECK(l.ceilings.front().share * 1.0501 >= greatest);
          CHECK(l.hints.size() <= 3);
          for (const Hint& h : l.hints) {
            CHECK(h.low <= h.likely);
            CHECK(h.likely <= h.high * 1.000001);
            CHECK(h.likely >= 1.0499 * l.files_per_second);
            CHECK_FALSE(h.sets.empty());
          }
        }
}

TEST_CASE("limits: as JSON") {
  const Limits l = find_limits(run_of({{"mel", 1, 9.8, 9.8}}));
  const auto json = limits_json(l);
  CHECK(json["cause"] == "concurrency");
  CHECK(json["node"] == "mel");
  CHECK(json["nothing_to_gain"] == false);
  CHECK(json["ceilings"][0]["resource"] == "concurrency");
  CHECK(json["ceilings"][0]["files_per_second"].get<double>() == doctest::Approx(1000 / 9.8));
  CHECK(json["hints"][0]["set"]["mel.concurrency"] == "4");
}

TEST_CASE("limits: a change is measured by the middle of its pairs") {
  Hint hint;
  hint.sets = {{"workers", "4"}};
  hint.low = 150;
  hint.likely = 190;
  hint.high = 210;
  const Gain good = gain_of({{100, 110, 90}, {190, 198, 180}});
  CHECK(good.middle == doctest::Approx(1.9));  // 1.8, 1.9, 2.0
  CHECK(good.low == doctest::Approx(1.8));
  CHECK(good.high == doctest::Approx(2.0));
  CHECK(is_as_predicted(reached(good, hint, 100)));
  const Gain less = gain_of({{100, 100}, {120, 140}});
  CHECK(less.middle == doctest::Approx(1.3));
  CHECK(reached(less, hint, 100) == doctest::Approx(1.0 / 3));
  CHECK_FALSE(is_as_predicted(reached(less, hint, 100)));
  CHECK_FALSE(is_as_predicted(reached(gain_of({{100}, {236}}), hint, 100)));
}

TEST_CASE(
    "limits: a change is as predicted by the middle of its pairs, not where one of them comes "
    "near") {
  struct Row {
    double low, likely, high;  // [files/s]; 100 without the change
    std::vector<double> with;
    bool agrees;
  };
  const Row rows[] = {
      {113, 127, 140, {98, 90, 120}, false},  // the best pair reaches the prediction
      {113, 127, 140, {114, 90, 150}, true},
      {113, 127, 140, {113, 150, 90}, false},
      // Half of the gain to one and a half times it, whatever low and high are.
      {100, 125, 150, {108, 108, 108}, false},
      {100, 125, 150, {112, 112, 112}, false},
      {100, 125, 150, {113, 113, 113}, true},
      {100, 125, 126, {137, 137, 137}, true},
      {100, 125, 150, {138, 138, 138}, false},
      {102, 104, 108, {101.9, 101.9, 101.9}, false},
      {102, 104, 108, {102.1, 102.1, 102.1}, true},
      {102, 104, 108, {99, 99, 99}, false},
  };
  for (const Row& row : rows) {
    CAPTURE(row.likely);
    CAPTURE(row.with.front());
    Hint hint;
    hint.low = row.low, hint.likely = row.likely, hint.high = row.high;
    const Gain gain = gain_of({{100, 100, 100}, row.with});
    CHECK(is_as_predicted(reached(gain, hint, 100)) == row.agrees);
  }
}

// So a gain is shown where no pair was slower.
TEST_CASE("limits: of a few pairs, the interval is from the smallest to the largest") {
  CHECK(gain_of({{100, 100}, {113, 150}}).low == doctest::Approx(1.13));
  CHECK(gain_of({{100, 100}, {99, 150}}).low == doctest::Approx(0.99));
  const std::vector<double> orders[] = {{98, 90, 120}, {120, 98, 90}, {90, 120, 98}};
  for (const std::vector<double>& with : orders)
    for (const std::uint64_t seed : {1, 2, 3}) {
      const Gain gain = gain_of({{100, 100, 100}, with}, seed);
      CHECK(gain.low == doctest::Approx(0.9));
      CHECK(gain.high == doctest::Approx(1.2));
    }
}

}  // namespace melflow::limits_test
