// `melflow update --dry-run`: announces exactly what the update then does, and changes nothing.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <chrono>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/apps/pipelines.h"
#include "tests/apps/process.h"
#include "tests/apps/sound.h"
#include "tests/support/commit_file.h"

namespace melflow::test::dry_run_test {

using Json = nlohmann::ordered_json;
namespace fs = std::filesystem;

namespace {

// Returns bytes and modification time of every file below.
std::map<std::string, std::pair<std::string, fs::file_time_type>> state_of(
    const TempFolder& folder) {
  std::map<std::string, std::pair<std::string, fs::file_time_type>> out;
  for (const auto& entry : fs::recursive_directory_iterator(folder.path()))
    if (entry.is_regular_file() && !entry.path().filename().string().starts_with(".std"))
      out[entry.path()] = {read_text(entry.path()), entry.last_write_time()};
  return out;
}

struct Corpus {
  TempFolder folder;
  Corpus(const std::string& files, const std::string& sink) {
    write_text(folder / "p.yaml",
               test::nodes_to_mel("root: clips" + files,
                                  "sample_rate: 8000, n_fft: 256, hop: 80, n_mels: 20") +
                   "  write: {stage: " + sink + ", from: mel, path: '${OUT}', max_dropped: 50%}\n");
    for (int i = 0; i < 8; ++i) add(fmt::format("{}.wav", i));
    write_text(folder / "clips/broken.wav", "no sound");
  }
  void add(const std::string& name) const { test::write_clip(folder / ("clips/" + name), 8000, 2); }
  Ended melflow(std::vector<std::string> words, const std::string& out) const {
    words.insert(words.begin(), MELFLOW_PROGRAM);
    words.insert(words.end(), {"p.yaml", "--var", "OUT=" + out});
    return test::run(folder, words);
  }
  // Returns the announcement, after checking that nothing has changed.
  Json dry_run(const std::string& out, const std::string& how = "") const {
    std::vector<std::string> words{"update", "--dry-run", "--json"};
    if (!how.empty()) words.push_back(how);
    const auto before = state_of(folder);
    const Ended e = melflow(words, out);
    CHECK(state_of(folder) == before);
    REQUIRE(e.code == 0);
    return Json::parse(e.out);
  }
};

std::map<std::string, std::string> reasons(const Json& said) {
  std::map<std::string, std::string> out;
  for (const Json& file : said["compute"]) out[file["path"]] = file["why"];
  return out;
}

}  // namespace

TEST_CASE("dry run: what an update would do, and does") {
  for (const char* sink : {"hdf5_write", "npy_write"}) {
    CAPTURE(std::string(sink));
    const std::string name = *sink == 'h' ? "out.h5" : "out.npy";
    Corpus corpus(", feed: cache, cache_path: audio.cache", sink);
    Json said = corpus.dry_run(name);
    CHECK(said["is_there"] == false);
    CHECK(reasons(said).size() == 9);
    REQUIRE(corpus.melflow({"run", "-q"}, name).code == 3);

    said = corpus.dry_run(name);
    CHECK(said["kept_files"] == 8);
    CHECK(said["in_place"] == true);
    CHECK(reasons(said) == std::map<std::string, std::string>{{"broken.wav", "failed before"}});
    CHECK(corpus.dry_run(name, "--compact")["in_place"] == false);

    corpus.add("9.wav");
    fs::last_write_time(corpus.folder / "clips/3.wav", fs::file_time_type::clock::now());
    fs::resize_file(corpus.folder / "clips/4.wav", 4000);
    fs::remove(corpus.folder / "clips/5.wav");
    said = corpus.dry_run(name);
    CHECK(said["kept_files"] == 5);
    CHECK(said["in_place"] == false);
    CHECK(said["dropped_files"] == 1);
    CHECK(reasons(said) ==
          std::map<std::string, std::string>{{"3.wav", "changed (modification time)"},
                                             {"4.wav", "changed (size)"},
                                             {"9.wav", "new"},
                                             {"broken.wav", "failed before"}});
    const Ended text = corpus.melflow({"update", "--dry-run"}, name);
    CHECK(has(text.out, name +
                            ": 5 files as before, 4 to compute (1 changed (modification time), 1 "
                            "changed (size), 1 failed before, 1 new), 1 file gone with "));
    CHECK(has(text.out, ": 5.wav\n"));
    CHECK(said["dropped"] == Json{"5.wav"});
    CHECK(has(text.out, "  4.wav: changed (size)\n"));
    CHECK(has(text.out, "Nothing was computed or written.\n"));

    const Ended done = exits(3, corpus.melflow({"update", "--json", "--no-progress"}, name));
    const Json report = Json::parse(done.out);
    for (const Json& stage : report["stages"])
      if (stage["name"] == "read") CHECK(stage["items_in"] == 4);
    // The update names what it did, and a later update does not repeat it.
    for (const Json& stage : report["stages"]) {
      if (stage["stage"] != sink) continue;
      CHECK(stage["summary"]["dropped"] == Json{"5.wav"});
      CHECK(stage["summary"]["changed"] == Json{"3.wav", "4.wav"});
      CHECK(stage["summary"]["added"] == Json{"9.wav"});
    }
    fs::remove(corpus.folder / "clips/6.wav");
    corpus.add("10.wav");
    const Ended told = corpus.melflow({"update", "--no-progress", "--report", "page.html"}, name);
    CHECK(has(told.out, "1 file gone (6.wav), 1 file new (10.wav)"));
    const std::string page = read_text(corpus.folder / "page.html");
    const auto at = page.find("{", page.find("id=\"report\""));
    const Json shown = Json::parse(page.substr(at, page.find("</script>", at) - at));
    for (const Json& stage : shown["stages"]) {
      if (stage["stage"] != sink) continue;
      CHECK(stage["summary"]["dropped"] == Json{"6.wav"});
      CHECK(stage["summary"]["added"] == Json{"10.wav"});
    }
    CHECK_FALSE(has(told.out, "changed"));
  }
}

TEST_CASE("dry run: of files known by their content") {
  const Corpus corpus("", "hdf5_write");
  REQUIRE(corpus.melflow({"run", "-q"}, "out.h5").code == 3);
  std::string yaml = read_text(corpus.folder / "p.yaml");
  yaml.replace(yaml.find("root: clips"), 11, "root: clips, update_by: content");
  write_text(corpus.folder / "p.yaml", yaml);
  CHECK(reasons(corpus.dry_run("out.h5")).at("0.wav") == "without a hash before");

  REQUIRE(corpus.melflow({"update", "-q"}, "out.h5").code == 3);
  std::string bytes = read_text(corpus.folder / "clips/3.wav");
  bytes.back() = static_cast<char>(bytes.back() + 1);
  write_text(corpus.folder / "clips/3.wav", bytes);
  CHECK(reasons(corpus.dry_run("out.h5")) ==
        std::map<std::string, std::string>{{"3.wav", "changed (content)"},
                                           {"broken.wav", "failed before"}});
}

TEST_CASE("dry run: what an update is refused for, it is refused for, too") {
  Corpus corpus("", "hdf5_write");
  REQUIRE(corpus.melflow({"run", "-q"}, "out.h5").code == 3);
  for (int i = 0; i < 6; ++i) fs::remove(corpus.folder / fmt::format("clips/{}.wav", i));
  const auto before = state_of(corpus.folder);
  const Ended e = exits(1, corpus.melflow({"update", "--dry-run"}, "out.h5"));
  CHECK(has(e.err, "6 of its 8 files with rows"));
  CHECK(
      has(e.out, "out.h5: 2 files as before, 1 to compute (1 failed before), 6 files gone with "));
  CHECK(has(e.out, "\n  broken.wav: failed before\nNothing was computed or written.\n"));
  CHECK_FALSE(has(e.out, "would"));
  const Ended json = exits(1, corpus.melflow({"update", "--dry-run", "--json"}, "out.h5"));
  CHECK(has(Json::parse(json.out)["error"].get<std::string>(), "6 of its 8 files with rows"));
  CHECK(Json::parse(json.out)["exit_code"] == 1);
  const Ended other =
      exits(1, corpus.melflow({"update", "--dry-run", "--set", "mel.n_mels=30"}, "out.h5"));
  CHECK(has(other.err, "holds other features than this pipeline makes"));
  CHECK(state_of(corpus.folder) == before);
}

TEST_CASE("dry run: which split a file would be in") {
  Corpus corpus(", splits: ratio, split_ratios: {train: 75, test: 25}", "hdf5_write");
  REQUIRE(corpus.melflow({"run", "-q"}, "out.h5").code == 3);
  for (int i = 10; i < 14; ++i) corpus.add(fmt::format("{}.wav", i));
  std::map<std::string, std::string> said;
  const Json preview = corpus.dry_run("out.h5");
  for (const Json& file : preview["compute"]) said[file["path"]] = file["split"];
  REQUIRE(said.size() == 5);
  const Ended text = corpus.melflow({"update", "--dry-run"}, "out.h5");
  CHECK(has(text.out, "  10.wav: new in " + said["10.wav"] + "\n"));
  CHECK(has(text.out, "1 failed before in " + said["broken.wav"]));
  REQUIRE(corpus.melflow({"update", "-q"}, "out.h5").code == 3);
  const Ended inspect =
      test::run(corpus.folder, {MELFLOW_PROGRAM, "inspect", "out.h5", "--json", "--files"});
  std::map<std::string, std::string> got;
  const Json written = Json::parse(inspect.out);
  for (const Json& file : written["files"]) got[file["path"]] = file["split"];
  for (const auto& [path, split] : said) CHECK(got[path] == split);
}

TEST_CASE("dry run: a corpus that was copied without its times is told how to be known again") {
  Corpus corpus("", "hdf5_write");
  REQUIRE(corpus.melflow({"run", "-q"}, "out.h5").code == 3);
  const auto touch = [&](int i) {
    fs::last_write_time(corpus.folder / fmt::format("clips/{}.wav", i),
                        fs::file_time_type::clock::now() + std::chrono::hours(1));
  };
  for (int i = 0; i < 7; ++i) touch(i);
  const std::string hint = "was the corpus copied? Keep the times (cp -p, rsync -t)";
  CHECK_FALSE(has(corpus.melflow({"update", "--dry-run"}, "out.h5").err, hint));
  touch(7);
  const Ended e = exits(0, corpus.melflow({"update", "--dry-run"}, "out.h5"));
  CHECK(has(e.err,
            "out.h5: every file has another modification time than when it was made, and its "
            "size: " +
                hint));
  CHECK(has(e.err, "update_by: content"));
}

TEST_CASE("dry run: each of several outputs says what it would take") {
  Corpus corpus("", "hdf5_write");
  REQUIRE(corpus.melflow({"run", "-q"}, "out.h5").code == 3);
  corpus.add("8.wav");
  const std::string one = read_text(corpus.folder / "p.yaml");
  write_text(corpus.folder / "p.yaml",
             one + "  second: {stage: npy_write, from: mel, path: second.npy}\n");
  const Json said = corpus.dry_run("out.h5");
  REQUIRE(said["outputs"].size() == 2);
  CHECK_FALSE(said.contains("compute"));
  const Json &first = said["outputs"][0], &second = said["outputs"][1];
  CHECK(first["output"] == "out.h5");
  CHECK(first["kept_files"] == 8);
  CHECK(first["in_place"] == true);
  CHECK(reasons(first) ==
        std::map<std::string, std::string>{{"8.wav", "new"}, {"broken.wav", "failed before"}});
  CHECK(second["output"] == "second.npy");
  CHECK(second["is_there"] == false);
  CHECK(reasons(second).size() == 10);
  const Ended text = corpus.melflow({"update", "--dry-run"}, "out.h5");
  CHECK(has(text.out, "out.h5: 8 files as before, 2 to compute (1 failed before, 1 new)\n"));
  CHECK(has(text.out, "second.npy: 0 files as before, 10 to compute (10 new)\n"));
  CHECK(has(text.out, "10 files would be read, once for all outputs.\nNothing was computed"));
  const Ended done = exits(3, corpus.melflow({"update", "--json", "--no-progress"}, "out.h5"));
  const Json report = Json::parse(done.out);
  for (const Json& stage : report["stages"])
    if (stage["name"] == "read") CHECK(stage["items_in"] == 10);
  // If one output is refused, all are.
  for (int i = 0; i < 6; ++i) fs::remove(corpus.folder / fmt::format("clips/{}.wav", i));
  const Ended refused = exits(1, corpus.melflow({"update", "--dry-run"}, "out.h5"));
  CHECK(has(refused.err, "out.h5: 6 of its 9 files with rows"));
  CHECK(has(refused.err, "\nmelflow: second.npy: 6 of its 9 files with rows"));
  CHECK_FALSE(has(refused.err, "\\n"));
}

TEST_CASE("dry run: what an interrupted run left to be completed is not") {
  const Corpus corpus("", "hdf5_write");
  REQUIRE(corpus.melflow({"run", "-q"}, "out.h5").code == 3);
  const fs::path undo = corpus.folder / "out.h5.undo", commit = corpus.folder / "out.h5.commit";
  write_text(corpus.folder / "out.h5.journal", "melflow log 1\n");  // there is no output beside it
  write_text(undo, "melflow undo 2\n");
  const auto refused = [&](const fs::path& left) {
    const auto before = state_of(corpus.folder);
    const Ended e = exits(1, corpus.melflow({"update", "--dry-run"}, "out.h5"));
    CHECK(has(e.err, left.filename().string() + ": an interrupted run left this"));
    CHECK(has(e.err, "run the same command without --dry-run first"));
    CHECK(state_of(corpus.folder) == before);
  };
  refused(undo);
  fs::remove(undo);
  test::write_commit(commit, '0', {"out.h5"});
  fs::rename(corpus.folder / "out.h5", corpus.folder / "out.h5.part");
  refused(commit);
  CHECK(corpus.melflow({"update", "-q"}, "out.h5").code == 3);
  CHECK(corpus.dry_run("out.h5")["kept_files"] == 8);
}

TEST_CASE("dry run: a sink that would write is refused") {
  const Toy folder(3);
  const Ended e =
      exits(1, test::run(folder, {MELFLOW_TOY_PROGRAM, "update", "--dry-run", "toy.yaml"}));
  CHECK(has(e.err, "--dry-run: the output of end (toy_keep) cannot be updated"));
  CHECK_FALSE(fs::exists(folder / "toy.out"));
}

}  // namespace melflow::test::dry_run_test
