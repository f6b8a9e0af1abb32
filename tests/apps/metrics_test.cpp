// `--metrics`: the figures of a run for Prometheus, replaced as a whole while it runs.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <atomic>
#include <filesystem>
#include <thread>

#include "apps/report/metrics_text.h"
#include "tests/apps/pipelines.h"
#include "tests/apps/process.h"
#include "tests/support/audio_files.h"
#include "tests/support/python.h"
#include "tests/support/source_path.h"

namespace melflow::test::metrics_test {
namespace {

Ended toy(const TempFolder& folder, std::vector<std::string> more,
          const std::string& verb = "run") {
  std::vector<std::string> command{MELFLOW_TOY_PROGRAM, verb, "toy.yaml"};
  command.insert(command.end(), more.begin(), more.end());
  return test::run(folder, command);
}

bool is_in_state(const std::string& text, const std::string& state) {
  return has(text, fmt::format("\nmelflow_run_state{{run=\"m\",state=\"{}\"}} 1\n", state));
}

// Whether it has its first and its last line.
bool is_whole(const std::string& text) {
  return text.starts_with("# HELP melflow_run_state ") && text.ends_with("\n") &&
         has(text, "\nmelflow_run_node_waiting_items{run=\"m\",node=\"end\"} ");
}

}  // namespace

TEST_CASE("metrics: the figures are those of the report, under documented names") {
  for (const char* set : {"workers=2", "files.feed=preload"}) {
    CAPTURE(std::string(set));
    const TempFolder folder;
    std::filesystem::create_directories(folder / "data");
    for (unsigned i = 0; i < 20; ++i)
      test::write_wav(folder / fmt::format("data/voice {}.wav", i), 16000 * (1 + i % 3), 16000, i);
    write_text(folder / "data/broken.wav", "RIFF");
    write_text(folder / "p.yaml",
               test::nodes_to_mel("root: data", "sample_rate: 16000, n_fft: 512") +
                   "  write: {stage: hdf5_write, from: mel, path: o.h5}\n");
    exits(3, melflow_in(folder, {"run", "p.yaml", "--set", set, "--metrics", "run \"1\".prom",
                                 "--json=r.json"}));
    CHECK(test::python_says("apps/check_metrics.py",
                            fmt::format("'{}' '{}' '{}'", folder / "run \"1\".prom",
                                        folder / "r.json", source_path("docs/profiling.md"))) ==
          "");
    const std::string text = read_text(folder / "run \"1\".prom");
    for (const char* secret : {"voice", "broken", "data", "o.h5"}) CHECK_FALSE(has(text, secret));
    struct stat st {};
    REQUIRE(stat((folder / "run \"1\".prom").c_str(), &st) == 0);
    const mode_t mask = umask(0);
    umask(mask);
    CHECK((st.st_mode & 0777) == (0666 & ~mask));  // an exporter is another user
  }
}

TEST_CASE("metrics: a reader during the run sees whole files, and how far it is") {
  const Toy folder(20);
  const auto text = [&] { return read_text(folder / "m.prom"); };
  Process process(folder,
                  {MELFLOW_TOY_PROGRAM, "run", "toy.yaml", "--metrics", "m.prom", "--metrics-every",
                   "1ms", "--set", "work.until=go", "--set", "work.wait_ms=1"});
  process.wait_until([&] { return std::filesystem::exists(folder / "m.prom"); });
  std::atomic<bool> is_over{false};
  std::string torn;
  std::thread reader([&] {
    while (!is_over)
      if (const std::string seen = text(); !is_whole(seen)) torn = "torn: " + seen;
  });
  struct Joined {
    std::atomic<bool>& is_over;
    std::thread& thread;
    ~Joined() {
      is_over = true;
      if (thread.joinable()) thread.join();
    }
  } joined{is_over, reader};
  process.wait_until([&] {
    return has(text(), "\nmelflow_run_found_files{run=\"m\"} 20\n") &&
           is_in_state(text(), "running") &&
           !has(text(), "\nmelflow_run_node_busy_seconds{run=\"m\",node=\"work\"} 0\n");
  });
  CHECK(has(text(), "\nmelflow_run_files{run=\"m\",outcome=\"ok\"} 0\n"));
  write_text(folder / "go", "");
  exits(0, process.wait());
  is_over = true;
  reader.join();
  CHECK(torn == "");
  CHECK(is_in_state(text(), "complete"));
  CHECK(has(text(), "\nmelflow_run_files{run=\"m\",outcome=\"ok\"} 20\n"));
  CHECK_FALSE(std::filesystem::exists(folder / "m.prom.document.part"));
}

TEST_CASE("metrics: how a run ended, or that it did not start") {
  const Toy folder(20);
  const auto text = [&] { return read_text(folder / "m.prom"); };
  exits(1, toy(folder, {"--metrics=m.prom", "--set", "work.fail_every=1"}));
  CHECK(is_in_state(text(), "failed"));
  CHECK(has(text(), "\nmelflow_run_files{run=\"m\",outcome=\"failed\"} 20\n"));
  exits(3, toy(folder, {"--metrics=m.prom", "--set", "work.fail_every=5"}));
  CHECK(is_in_state(text(), "complete"));
  exits(1, toy(folder, {"--metrics=m.prom", "--set", "work.break_down=true"}));
  CHECK(is_in_state(text(), "not_started"));
  exits(0, toy(folder, {"--metrics=m.prom"}));
  CHECK(is_in_state(text(), "complete"));
  exits(78, toy(folder, {"--metrics=m.prom", "--set", "work.no_such=1"}));
  CHECK(is_in_state(text(), "not_started"));
  // A run that has ended stays so where its report cannot be written.
  exits(1, toy(folder, {"--metrics=m.prom", "--json=/dev/full"}));
  CHECK(is_in_state(text(), "complete"));
  Process process(folder, {MELFLOW_TOY_PROGRAM, "run", "toy.yaml", "--metrics", "m.prom", "--set",
                           "work.begun=begun", "--set", "work.until=go"});
  process.wait_until([&] { return std::filesystem::exists(folder / "begun"); });
  CHECK(is_in_state(text(), "running"));
  const Ended second = exits(1, toy(folder, {"--metrics=m.prom"}));
  CHECK(has(second.err, "--metrics: m.prom.document.part: another run is writing it"));
  process.send(SIGINT);
  write_text(folder / "go", "");
  exits(75, process.wait());
  CHECK(is_in_state(text(), "stopped"));
}

TEST_CASE("metrics: that the file cannot be written is told before the run") {
  const Toy folder(20);
  std::filesystem::create_directory(folder / "folder.prom");
  write_text(folder / "theirs.prom", "# HELP node_load1 1m load average.\n");
  REQUIRE(mkfifo((folder / "pipe.prom").c_str(), 0600) == 0);
  struct Row {
    const char* path;
    int code;
    const char* says;
  };
  for (const Row& row :
       {Row{"no/such/m.prom", 1, "there is no folder no/such; make it, or write elsewhere"},
        Row{"folder.prom", 1, "folder.prom: cannot be written: Is a directory"},
        Row{"theirs.prom", 1, "theirs.prom: this exists already and is not melflow's"},
        Row{"pipe.prom", 1, "pipe.prom: cannot be replaced as a whole"},
        Row{"m.txt", 2, "m.txt does not end in .prom"}, Row{".prom", 2, "does not end in .prom"}}) {
    CAPTURE(std::string(row.path));
    const Ended e =
        exits(row.code, toy(folder, {"--set", "work.begun=begun", "--metrics", row.path}));
    CHECK(has(e.err, "--metrics: "));
    CHECK(has(e.err, row.says));
    CHECK_FALSE(std::filesystem::exists(folder / "begun"));
  }
  CHECK(read_text(folder / "theirs.prom") == "# HELP node_load1 1m load average.\n");
  CHECK(has(exits(2, toy(folder, {"--metrics-every", "1s"})).err,
            "--metrics-every requires --metrics"));
  CHECK(has(exits(2, toy(folder, {"--dry-run", "--metrics", "m.prom"}, "update")).err,
            "--metrics excludes --dry-run"));
  CHECK(has(exits(2, toy(folder, {"--metrics", "no/such/m.txt", "--watch", "1s"}, "update")).err,
            "does not end in .prom"));
}

TEST_CASE("metrics: that the file cannot be written later is a warning, and the run goes on") {
  const Toy folder(20);
  exits(0, toy(folder, {"--metrics=m.prom"}));
  const std::string before = read_text(folder / "m.prom");
  // A file size limit of 0 blocks stands for a full disk.
  const Ended e = exits(
      0, test::run(folder, {"/bin/bash", "-c",
                            "set -o pipefail; (ulimit -f 0; exec \"$0\" run toy.yaml --metrics "
                            "m.prom --metrics-every 1ms --set work.wait_ms=1) 2>&1 | cat",
                            MELFLOW_TOY_PROGRAM}));
  const std::string said = "warning: --metrics: m.prom: cannot be written: File too large";
  const std::size_t at = e.out.find(said);
  REQUIRE(at != e.out.npos);
  CHECK(e.out.find(said, at + 1) == e.out.npos);
  CHECK(has(e.out, "20 ok"));
  CHECK(read_text(folder / "m.prom") == before);
  CHECK_FALSE(std::filesystem::exists(folder / "m.prom.document.part"));
}

TEST_CASE("metrics: names in labels are escaped") {
  RunMetrics metrics;
  metrics.nodes.push_back({"a\"b\\c\nd", 1.5, 3});
  const std::string text = metrics_text(metrics, "r\"\xff");
  CHECK(has(text, "\nmelflow_run_seconds{run=\"r\\\"\\\\xff\"} 0\n"));
  CHECK(has(text, "{run=\"r\\\"\\\\xff\",node=\"a\\\"b\\\\c\\nd\"} 1.5\n"));
}

}  // namespace melflow::test::metrics_test
