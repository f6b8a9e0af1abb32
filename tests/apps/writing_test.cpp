// Files that the program writes besides outputs: failures, and where none may be written.
#include <doctest/doctest.h>
#include <signal.h>
#include <sys/stat.h>

#include <filesystem>

#include "tests/apps/pipelines.h"
#include "tests/apps/process.h"
#include "tests/apps/sound.h"

namespace melflow::test::writing_test {
namespace {

const std::string kMelflow = MELFLOW_PROGRAM;
const std::string kToy = MELFLOW_TOY_PROGRAM;

Ended shell(const TempFolder& folder, const std::string& line) {
  return run(folder, {"/bin/bash", "-c", line, kToy, kMelflow});
}

bool is_device(const char* path) {
  struct stat st {};
  return stat(path, &st) == 0 && S_ISCHR(st.st_mode);
}

}  // namespace

TEST_CASE("writing: a verb whose text cannot be printed does not end well") {
  const Toy folder(20);
  write_toy(folder, 20, "b.yaml");
  struct Row {
    const char* arguments;
    int code;
  };
  const Row rows[] = {{"graph toy.yaml", 1},
                      {"validate toy.yaml", 1},
                      {"validate --json toy.yaml", 1},
                      {"stages", 1},
                      {"stages --markdown", 1},
                      {"compare toy.yaml b.yaml", 2},
                      {"compare --json toy.yaml b.yaml", 2},
                      {"inspect --features toy.yaml", 1},
                      {"init new.yaml", 1},
                      {"--help", 1},
                      {"--version", 1},
                      {"run --json toy.yaml", 1},
                      // The output counts; losing its summary is reported.
                      {"run toy.yaml", 0}};
  for (const Row& row : rows) {
    CAPTURE(std::string(row.arguments));
    const Ended e =
        exits(row.code, shell(folder, "\"$0\" " + std::string(row.arguments) + " >/dev/full"));
    CHECK(has(e.err, "stdout"));
  }
  // A reader that stops early is no error.
  CHECK(shell(folder, "set -o pipefail; \"$0\" stages --markdown | head -n 1").code != 1);
}

TEST_CASE("writing: with stdout and stderr closed nothing is printed into the output") {
  const TempFolder folder;
  test::write_clip(folder / "clips/a.wav", 16000, 0.5);
  write_text(folder / "p.yaml", test::nodes_to_mel("root: clips", "sample_rate: 16000, n_mels: 8") +
                                    "  write: {stage: npy_write, from: mel, path: \"${OUT}\"}\n");
  REQUIRE(shell(folder, "OUT=a.npy \"$1\" run p.yaml").code == 0);
  REQUIRE(shell(folder, "OUT=b.npy exec \"$1\" run p.yaml <&- >&- 2>&-").code == 0);
  CHECK(read_text(folder / "a.npy") == read_text(folder / "b.npy"));
  CHECK(read_text(folder / "a.index.npy") == read_text(folder / "b.index.npy"));

  SUBCASE("an output does not replace the pipeline that makes it") {
    const std::string yaml = read_text(folder / "p.yaml");
    std::filesystem::copy(folder / "p.yaml", folder / "p.npy");
    CHECK(has(exits(1, shell(folder, "OUT=p.npy \"$1\" run p.npy --set write.overwrite=true")).err,
              "p.npy: this is what this run reads and would be replaced by the output"));
    CHECK(read_text(folder / "p.npy") == yaml);
  }
  SUBCASE("a limit on the size of files is told") {
    const Ended e = exits(1, shell(folder, "ulimit -f 1; OUT=c.npy \"$1\" run p.yaml"));
    CHECK(has(e.err, "File too large"));
    CHECK(has(e.err, "ulimit -f"));
    CHECK_FALSE(std::filesystem::exists(folder / "c.npy"));
  }
  SUBCASE("a picture does not replace what it shows, nor a device") {
    const std::string rows = read_text(folder / "a.npy");
    const Ended e = exits(1, shell(folder, "\"$1\" show a.npy --file a.wav -o a.npy"));
    CHECK(has(e.err, "a.npy: this file is read and would be replaced"));
    CHECK(read_text(folder / "a.npy") == rows);
    CHECK(shell(folder, "\"$1\" show a.npy --file a.wav -o /dev/full").code == 1);
    CHECK(is_device("/dev/full"));
  }
}

TEST_CASE("writing: init makes a whole file or none") {
  const TempFolder folder;
  for (const char* device : {"/dev/full", "/dev/null"}) {
    shell(folder, std::string("\"$0\" init --force ") + device);
    CHECK(is_device(device));
  }
  CHECK(shell(folder, "\"$0\" init --force /dev/full").code == 1);
  write_text(folder / "old.yaml", "old");
  CHECK(shell(folder, "\"$0\" init old.yaml").code == 1);
  // A file size limit of 0 blocks stands for a full disk.
  exits(1, shell(folder, "ulimit -f 0; \"$0\" init --force old.yaml 2>/dev/null"));
  CHECK(read_text(folder / "old.yaml") == "old");
  CHECK_FALSE(std::filesystem::exists(folder / "old.yaml.document.part"));
  CHECK(shell(folder, "\"$0\" init --force old.yaml").code == 0);
  CHECK(read_text(folder / "old.yaml").starts_with("# A melflow pipeline"));
}

TEST_CASE("writing: that a JSON report cannot be written is known before the run") {
  const Toy folder(20);
  const std::string yaml = read_text(folder / "toy.yaml");
  std::filesystem::create_directory(folder / "folder");
  for (const char* where : {"no/such/r.json", "folder", "toy.yaml"}) {
    CAPTURE(std::string(where));
    const Ended e = exits(
        1,
        shell(folder, std::string("\"$0\" run toy.yaml --set work.begun=begun --json=") + where));
    CHECK(has(e.err, "--json: "));
    CHECK_FALSE(std::filesystem::exists(folder / "begun"));
  }
  CHECK(read_text(folder / "toy.yaml") == yaml);
  // A file that can be opened but not written is detected only afterwards; an earlier report is
  // replaced as a whole.
  CHECK(shell(folder, "\"$0\" run toy.yaml --json=/dev/full").code == 1);
  const std::string old = R"({"melflow_version": "0.1.0", "ending": "complete", "exit_code": 0})";
  write_text(folder / "r.json", old);
  CHECK(shell(folder, "ulimit -f 0; \"$0\" run toy.yaml --json=r.json >/dev/null 2>&1").code == 1);
  CHECK(read_text(folder / "r.json") == old);
  CHECK(shell(folder, "\"$0\" run toy.yaml --json=r.json").code == 0);
  CHECK(read_text(folder / "r.json").starts_with("{"));
  CHECK_FALSE(std::filesystem::exists(folder / "r.json.document.part"));
  CHECK(has(shell(folder, "\"$0\" run toy.yaml --json=/dev/fd/3 3>&1 >/dev/null | cat").out,
            "\"exit_code\": 0"));
}

TEST_CASE("writing: a report replaces neither an output nor anything but an earlier report") {
  const TempFolder folder;
  test::write_clip(folder / "clips/a.wav", 16000, 0.5);
  write_text(folder / "list.csv", "path\nclips/a.wav\n");
  write_text(folder / "notes.json", R"({"mine": 1})");
  write_text(folder / "p.yaml",
             test::nodes_to_mel("manifest: list.csv", "sample_rate: 16000, n_mels: 8") +
                 "  write: {stage: npy_write, from: mel, path: out.npy, overwrite: true}\n");
  std::filesystem::create_symlink("out.npy", folder / "link");
  std::filesystem::create_symlink(".", folder / "here");
  const auto bytes = [&] {
    std::string all;
    for (const char* name : {"clips/a.wav", "list.csv", "notes.json", "p.yaml", "out.npy",
                             "out.index.npy", "out.index.json", "other.h5"})
      all += std::filesystem::exists(folder / name) ? read_text(folder / name) + name : "";
    return all;
  };
  const auto is_refused = [&](const std::string& argument, const std::string& why) {
    CAPTURE(argument);
    const std::string before = bytes();
    CHECK(has(exits(1, shell(folder, "\"$1\" run p.yaml " + argument)).err, why));
    CHECK(bytes() == before);
  };
  const std::string theirs = "is not melflow's", output = "this run writes its output there";
  // Before the output exists, and with it.
  for (const bool is_first : {true, false}) {
    for (const char* option : {"--json=", "--trace="}) {
      is_refused(option + std::string("out.npy"), is_first ? output : theirs);
      is_refused(option + std::string("here/out.index.json"), is_first ? output : theirs);
      is_refused(option + std::string("link"), is_first ? output : theirs);
      for (const char* name : {"clips/a.wav", "list.csv", "notes.json"})
        is_refused(option + std::string(name), theirs);
      is_refused(option + std::string("clips/new.wav"), "the name of a recording");
    }
    write_text(folder / "mine.html", "<html>mine</html>");
    is_refused("--report mine.html", theirs);
    if (is_first) exits(0, shell(folder, "\"$1\" run p.yaml"));
  }
  CHECK_FALSE(std::filesystem::exists(folder / "clips/new.wav"));
  // Earlier ones are replaced.
  for (int i = 0; i < 2; ++i)
    exits(0, shell(folder, "\"$1\" run p.yaml --json=r.json --report r.html --trace t.json"));
  is_refused("--json=t.json", theirs);
  is_refused("--trace r.json", theirs);
  // The other verbs.
  for (const char* command :
       {"sweep p.yaml --vary workers=1 --repeat 1 -o mine.html", "tune p.yaml -o notes.json",
        "bench --seconds 10ms --json=list.csv", "show out.npy -o clips/a.PNG"}) {
    CAPTURE(std::string(command));
    write_text(folder / "clips/a.PNG", "mine");
    const std::string before = bytes();
    CHECK(has(exits(1, shell(folder, "\"$1\" " + std::string(command))).err, theirs));
    CHECK(bytes() == before);
    CHECK(read_text(folder / "clips/a.PNG") == "mine");
  }
  CHECK(has(exits(1, shell(folder, "\"$1\" init --from list.csv list.csv --force")).err,
            "this file is read and would be replaced"));
  CHECK(bytes().find("path\nclips/a.wav") != std::string::npos);
}

TEST_CASE("writing: a second signal ends the program behind a terminal that takes nothing") {
  const Toy folder(20);
  Process process(
      folder, {kToy, "run", "toy.yaml", "--set", "work.wait_ms=60000", "--set", "work.begun=begun"},
      {}, true);
  process.type("\x13");  // Ctrl-S
  process.wait_until([&] { return std::filesystem::exists(folder / "begun"); });
  process.send(SIGINT);
  process.send(SIGTERM);
  CHECK(process.wait().code == 130);
}

}  // namespace melflow::test::writing_test
