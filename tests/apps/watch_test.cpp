// `melflow update --watch`: whole files come into the output, those that are being written wait.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <csignal>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>

#include "stages/output/formats/feature_file.h"
#include "tests/apps/pipelines.h"
#include "tests/apps/process.h"
#include "tests/apps/sound.h"
#include "tests/support/watchdog.h"

namespace melflow::test::watch_test {

namespace fs = std::filesystem;

namespace {

struct Corpus {
  TempFolder folder;
  Corpus() {
    fs::create_directories(folder / "clips");
    write_text(folder / "p.yaml",
               // More rows than those that an update of an HDF5 file writes anew.
               nodes_to_mel("root: clips", "sample_rate: 8000, n_fft: 256, hop: 32, n_mels: 20") +
                   "  write: {stage: hdf5_write, from: mel, path: out.h5}\n");
  }
  // A file that gets its name when it is complete.
  void move_in(const std::string& name) const {
    write_clip(folder / name, 8000, 2);
    fs::rename(folder / name, folder / ("clips/" + name));
  }
  [[nodiscard]] std::string said() const {
    return fs::exists(folder / ".stdout") ? read_text(folder / ".stdout") : "";
  }
};

int reports(const std::string& said) {
  int count = 0;
  for (std::size_t at = 0; (at = said.find(" ok, ", at)) != said.npos; ++at) ++count;
  return count;
}

}  // namespace

TEST_CASE("watch: updates with each whole file, and waits for one that grows, until a signal") {
  const Watchdog watchdog("watch");
  const Corpus corpus;
  const TempFolder& folder = corpus.folder;
  Process process(folder, {MELFLOW_PROGRAM, "update", "p.yaml", "--watch", "3s", "--no-progress"});
  // An empty folder is no error.
  process.wait_until([&] { return has(read_text(folder / ".stderr"), "Ctrl-C ends"); });
  corpus.move_in("a.wav");
  process.wait_until([&] { return reports(corpus.said()) == 1; });
  CHECK(has(corpus.said(), "1 file: 1 ok"));

  write_clip(folder / "b.wav", 8000, 2);
  const std::string bytes = read_text(folder / "b.wav");
  std::size_t written = 0;
  const auto grow = [&](std::size_t most) {
    std::ofstream(folder / "clips/b.wav", std::ios::binary | std::ios::app)
        << bytes.substr(written, most);
    written = std::min(bytes.size(), written + most);
  };
  grow(100);
  corpus.move_in("c.wav");
  // A recorder that writes all the time.
  process.wait_until([&] {
    fs::last_write_time(folder / "clips/b.wav", fs::file_time_type::clock::now());
    return reports(corpus.said()) == 2;
  });
  CHECK(has(corpus.said(), "2 files: 2 ok"));
  grow(bytes.size());
  process.wait_until([&] { return reports(corpus.said()) == 3; });
  process.send(SIGINT);
  const Ended ended = process.wait();
  CHECK(ended.code == 0);
  std::set<std::string> names;
  const FeatureFile output(folder / "out.h5");
  for (const FeatureFile::Entry& file : output.files()) {
    CHECK(file.status == FeatureFile::Status::ok);
    names.insert(file.path);
  }
  CHECK(names == std::set<std::string>{"a.wav", "b.wav", "c.wav"});
  exits(0, melflow_in(folder, {"verify", "out.h5"}));
}

TEST_CASE("watch: rows of a file that is being rewritten stay until it is whole") {
  const Watchdog watchdog("watch: rewritten");
  const Corpus corpus;
  const TempFolder& folder = corpus.folder;
  corpus.move_in("a.wav");
  corpus.move_in("b.wav");
  exits(0, melflow_in(folder, {"run", "p.yaml", "-q"}));
  const std::uint64_t rows = FeatureFile(folder / "out.h5").files().at(0).rows_hash;
  Process process(folder, {MELFLOW_PROGRAM, "update", "p.yaml", "--watch", "3s", "--no-progress"});
  process.wait_until([&] { return has(read_text(folder / ".stderr"), "Ctrl-C ends"); });
  corpus.move_in("c.wav");
  // Shorter than it was, and longer all the time.
  write_text(folder / "clips/a.wav", "RIFF");
  process.wait_until([&] {
    std::ofstream(folder / "clips/a.wav", std::ios::binary | std::ios::app) << '.';
    return reports(corpus.said()) == 1;
  });
  process.send(SIGTERM);
  CHECK(process.wait().code == 0);
  const FeatureFile after(folder / "out.h5");
  REQUIRE(after.files().size() == 3);
  CHECK(after.files()[0].path == "a.wav");
  CHECK(after.files()[0].rows_hash == rows);
}

TEST_CASE("watch: a file that failed is not tried again while it is being written") {
  const Watchdog watchdog("watch: failed");
  const Corpus corpus;
  const TempFolder& folder = corpus.folder;
  corpus.move_in("a.wav");
  write_text(folder / "clips/b.wav", "");
  exits(3, melflow_in(folder, {"run", "p.yaml", "-q"}));
  const std::string why = FeatureFile(folder / "out.h5").remarks().at(0).reason;
  Process process(folder, {MELFLOW_PROGRAM, "update", "p.yaml", "--watch", "3s", "--no-progress"});
  corpus.move_in("c.wav");
  process.wait_until([&] {
    std::ofstream(folder / "clips/b.wav", std::ios::binary | std::ios::app) << '.';
    return reports(corpus.said()) == 1;
  });
  CHECK(has(corpus.said(), "3 files: 2 ok, 0 skipped, 1 failed"));
  CHECK(FeatureFile(folder / "out.h5").remarks().at(0).reason == why);
  fs::remove(folder / "clips/b.wav");
  corpus.move_in("b.wav");
  process.wait_until([&] { return reports(corpus.said()) == 2; });
  process.send(SIGINT);
  CHECK(process.wait().code == 0);
  CHECK(FeatureFile(folder / "out.h5").remarks().empty());
}

TEST_CASE("watch: an update that is refused is said once, and waits") {
  const Watchdog watchdog("watch: refused");
  const Corpus corpus;
  const TempFolder& folder = corpus.folder;
  for (const char* name : {"a.wav", "b.wav", "c.wav"}) corpus.move_in(name);
  exits(0, melflow_in(folder, {"run", "p.yaml", "-q"}));
  const std::string before = read_text(folder / "out.h5");
  const auto has_said = [&](const std::string& text) {
    return [&folder, text] { return has(read_text(folder / ".stderr"), text); };
  };
  fs::rename(folder / "clips/a.wav", folder / "a.wav");
  Process process(folder, {MELFLOW_PROGRAM, "update", "p.yaml", "--watch", "3s", "--no-progress"});
  process.wait_until(has_said("1 of its 3 files with rows (501 of 1503 rows) are gone"));
  process.wait_until(has_said("p.yaml: waits until that has changed; Ctrl-C ends"));
  // Another reason, as where a disk is not mounted.
  fs::rename(folder / "clips", folder / "unmounted");
  process.wait_until(has_said("clips: "));
  fs::rename(folder / "unmounted", folder / "clips");
  fs::rename(folder / "a.wav", folder / "clips/a.wav");
  {
    const FeatureFile reader(folder / "out.h5");
    corpus.move_in("d.wav");
    process.wait_until(has_said("another program is using it"));
  }
  CHECK(read_text(folder / "out.h5") == before);
  process.wait_until([&] { return reports(corpus.said()) == 1; });
  process.send(SIGINT);
  const Ended ended = process.wait();
  CHECK(ended.code == 0);
  CHECK(has(corpus.said(), "4 files: 4 ok"));
  exits(0, melflow_in(folder, {"verify", "out.h5"}));
}

TEST_CASE("watch: what cannot be dropped, as nothing else is left, is tried once") {
  const Watchdog watchdog("watch: nothing is left");
  const Corpus corpus;
  const TempFolder& folder = corpus.folder;
  corpus.move_in("a.wav");
  exits(0, melflow_in(folder, {"run", "p.yaml", "-q"}));
  fs::remove(folder / "clips/a.wav");
  Process process(folder, {MELFLOW_PROGRAM, "update", "p.yaml", "--watch", "1s", "--no-progress",
                           "--set", "write.max_dropped=100%"});
  const std::string kept = "this file is left as it was";
  const auto said = [&] { return read_text(folder / ".stderr"); };
  process.wait_until([&] { return has(said(), kept); });
  corpus.move_in("b.wav");  // a look comes before it has not changed for a second
  process.wait_until([&] { return has(corpus.said(), "1 file: 1 ok"); });
  process.send(SIGINT);
  CHECK(process.wait().code == 0);
  CHECK(said().find(kept) == said().rfind(kept));
}

TEST_CASE("watch: a first file that fails does not end it") {
  const Watchdog watchdog("watch: first fails");
  const Corpus corpus;
  const TempFolder& folder = corpus.folder;
  write_text(folder / "clips/a.wav", "no sound");
  Process process(folder, {MELFLOW_PROGRAM, "update", "p.yaml", "--watch", "1s", "--no-progress"});
  process.wait_until([&] { return has(read_text(folder / ".stderr"), "nothing is written"); });
  corpus.move_in("b.wav");
  process.wait_until([&] { return has(corpus.said(), "2 files: 1 ok, 0 skipped, 1 failed"); });
  process.send(SIGINT);
  CHECK(process.wait().code == 0);
}

TEST_CASE("watch: what does not go with it, and what ends it") {
  const Corpus corpus;
  const TempFolder& folder = corpus.folder;
  for (const char* other : {"--dry-run", "--json", "--stop-after=5s"})
    CHECK(has(exits(2, melflow_in(folder, {"update", "p.yaml", "--watch", "30s", other})).err,
              "--watch"));
  CHECK(has(exits(2, melflow_in(folder, {"update", "p.yaml", "--watch", "soon"})).err, "soon"));
  write_text(folder / "out.h5", "something else");
  corpus.move_in("a.wav");
  CHECK(has(exits(1, melflow_in(folder, {"update", "p.yaml", "--watch", "1ms"})).err, "out.h5"));
  CHECK(read_text(folder / "out.h5") == "something else");
}

}  // namespace melflow::test::watch_test
