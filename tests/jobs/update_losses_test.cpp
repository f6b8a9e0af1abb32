// What an update must not lose: rows of files that cannot be reached now, many rows at once, and
// the split that a file was in.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <filesystem>
#include <map>
#include <regex>

#include "stages/output/formats/feature_file.h"
#include "tests/jobs/shared.h"
#include "tests/support/audio_files.h"
#include "tests/support/job.h"
#include "tests/support/printing.h"
#include "tests/support/temp_folder.h"

namespace melflow::test::update_losses_test {
namespace {

// Outputs are in out/, where a test may write as a user without privileges.
class Corpus {
 public:
  Corpus() {
    folder_.folder("out");
    ::chmod((folder_ / "out").c_str(), 0777);
  }
  void clips(const std::string& name, int from, int to) {
    for (int i = from; i < to; ++i)
      write_wav(folder_.file(fmt::format("clips/{}/{}.wav", name, i)), 1500, 8000, unsigned(i));
  }
  void close(const std::string& name, mode_t mode) {
    REQUIRE(::chmod((folder_ / "clips/" + name).c_str(), mode) == 0);
  }
  [[nodiscard]] std::string out(const std::string& name = "out.h5") const {
    return folder_ / "out/" + name;
  }
  [[nodiscard]] const TempFolder& folder() const { return folder_; }
  JobResult run(const std::string& yaml, Update update = Update::none,
                const std::string& name = "out.h5") const {
    return run_job(yaml, in_out(folder_ / "clips", out(name)), {}, update);
  }
  // Runs as a user for whom permissions count.
  JobResult run_as_other(const std::string& yaml, Update update = Update::none) const {
    const OtherUser other;
    REQUIRE_MESSAGE(other.ok(), "this test needs to act as a user without rights");
    return run(yaml, update);
  }

 private:
  TempFolder folder_;
};

using Rows = std::map<std::string, std::vector<float>>;

Rows rows_of(const std::string& path) {
  const FeatureFile file(path);
  Rows out;
  for (const FeatureFile::Entry& e : file.files())
    if (e.count > 0) out[e.path] = file.read_rows(std::uint64_t(e.offset), std::uint64_t(e.count));
  return out;
}

std::map<std::string, std::string> splits_of(const std::string& path) {
  const FeatureFile file(path);
  std::map<std::string, std::string> out;
  for (const FeatureFile::Entry& e : file.files())
    out[e.path] = e.split < 0 ? "-" : file.splits().at(std::size_t(e.split));
  return out;
}

std::string entry(const JobResult& job, const std::string& name) {
  for (const auto& [key, value] : job.stage("write").summary)
    if (key == name) return value.is_scalar() ? value.text() : to_json(value);
  return "";
}

}  // namespace

TEST_CASE("update: rows of files that cannot be reached stay") {
  Corpus corpus;
  corpus.clips("a", 0, 6);
  corpus.clips("b", 6, 12);
  std::string files = "labels: parent_dir";
  SUBCASE("by time") {}
  SUBCASE("by contents") { files += ", update_by: content"; }
  REQUIRE(corpus.run_as_other(rows_pipeline(files)).complete());
  const Rows before = rows_of(corpus.out());
  REQUIRE(before.size() == 12);
  corpus.clips("c", 12, 13);
  corpus.close("b", 0444);  // its names can be listed, its files not read
  for (const Update update : {Update::append, Update::compact, Update::append}) {
    const JobResult job = completed(corpus.run_as_other(rows_pipeline(files), update));
    CHECK(job.report.counts.ok == 13);
    Rows after = rows_of(corpus.out());
    CHECK(after.erase("c/12.wav") == 1);
    CHECK(after == before);
    REQUIRE(job.report.warnings.size() == 1);
    CHECK(job.report.warnings[0] == corpus.out() + ": 6 of 13 files cannot be reached, such as " +
                                        (corpus.folder() / "clips/b/10.wav") +
                                        ": Permission denied; what they had there stays as it is");
  }
  // Files that changed meanwhile are computed as soon as they can be read again.
  corpus.clips("b", 9, 10);
  write_wav(corpus.folder() / "clips/b/9.wav", 1500, 8000, 77);
  corpus.close("b", 0755);
  const JobResult job = completed(corpus.run_as_other(rows_pipeline(files), Update::append));
  CHECK(job.report.warnings.empty());
  CHECK(job.stage("read").items_in == 1);
  CHECK(rows_of(corpus.out()).at("b/9.wav") != before.at("b/9.wav"));
}

TEST_CASE("update: a file whose bytes cannot be read for its hash keeps its rows") {
  Corpus corpus;
  corpus.clips("a", 0, 6);
  const std::string yaml = rows_pipeline("update_by: content");
  REQUIRE(corpus.run_as_other(yaml).complete());
  const Rows before = rows_of(corpus.out());
  corpus.close("a/3.wav", 0);
  CHECK(completed(corpus.run_as_other(yaml, Update::append)).report.counts.ok == 6);
  CHECK(rows_of(corpus.out()) == before);
}

TEST_CASE("a folder that cannot be listed ends run and update, and outputs stay as they are") {
  Corpus corpus;
  corpus.clips("a", 0, 6);
  corpus.clips("b", 6, 12);
  REQUIRE(corpus.run_as_other(rows_pipeline("labels: parent_dir")).complete());
  const std::string before = read_bytes(corpus.out());
  const Rows rows = rows_of(corpus.out());
  corpus.close("b", 0);
  for (const Update update : {Update::none, Update::append, Update::compact}) {
    const JobResult job =
        corpus.run_as_other(rows_pipeline("labels: parent_dir", "overwrite: true"), update);
    CHECK_FALSE(job.started);
    CHECK(job.error.find("clips/b/: cannot be listed: Permission denied; nobody knows") !=
          job.error.npos);
    CHECK(read_bytes(corpus.out()) == before);
  }
  // Where the folder counts as failed, an update still keeps its rows.
  const std::string counted = rows_pipeline("labels: parent_dir, closed_folders: failed");
  const JobResult job = completed(corpus.run_as_other(counted, Update::append));
  CHECK(job.report.counts.ok == 12);
  CHECK(job.report.counts.failed == 1);
  CHECK(rows_of(corpus.out()) == rows);
  corpus.close("b", 0755);
  const JobResult again =
      completed(corpus.run_as_other(rows_pipeline("labels: parent_dir"), Update::append));
  CHECK(again.report.counts.failed == 0);
  CHECK(again.stage("read").items_in == 0);
  CHECK(rows_of(corpus.out()) == rows);
}

TEST_CASE("update: many rows are not dropped without a word") {
  for (const char* stage : {"hdf5_write", "npy_write"}) {
    for (const char* split_files : {"false", "true"}) {
      CAPTURE(std::string(stage));
      CAPTURE(std::string(split_files));
      Corpus corpus;
      corpus.clips("train/a", 0, 30);
      corpus.clips("train/disk2", 30, 34);
      corpus.clips("test/a", 34, 40);
      const std::string name = std::string(stage) == "npy_write" ? "out.npy" : "out.h5";
      const auto yaml = [&](const std::string& more) {
        return rows_pipeline("splits: top_dir", fmt::format("split_files: {}{}", split_files, more),
                             stage);
      };
      REQUIRE(corpus.run(yaml(""), Update::none, name).complete());
      const std::string file = *split_files == 't'
                                   ? corpus.out(name).insert(corpus.out(name).rfind('.'), ".train")
                                   : corpus.out(name);
      const std::string before = read_bytes(file);
      std::filesystem::remove_all(corpus.folder() / "clips/train/disk2");
      std::filesystem::remove(corpus.folder() / "clips/test/a/39.wav");
      for (const Update update : {Update::append, Update::compact}) {
        const JobResult job = corpus.run(yaml(""), update, name);
        CHECK_FALSE(job.started);
        CHECK(job.error ==
              corpus.out(name) +
                  ": 5 of its 40 files with rows (25 of 200 rows) are gone or not listed any more, "
                  "such as train/disk2/30.wav. Is a disk not mounted, or have root, include or the "
                  "manifest changed? The output is left as it was. If these rows are to go, set "
                  "write.max_dropped, such as --set write.max_dropped=100% (it is 10%)");
        CHECK(read_bytes(file) == before);
      }
      CHECK_FALSE(corpus.run(yaml(", max_dropped: 4"), Update::append, name).started);
      const JobResult job = completed(corpus.run(yaml(", max_dropped: 5"), Update::append, name));
      CHECK(entry(job, "dropped_files") == "5");
      CHECK(entry(job, "kept_files") == "35");
    }
  }
}

TEST_CASE("update: a root that is missing or empty leaves the output as it was") {
  Corpus corpus;
  corpus.clips("a", 0, 5);
  REQUIRE(corpus.run(rows_pipeline("labels: none")).complete());
  const std::string before = read_bytes(corpus.out());
  std::filesystem::rename(corpus.folder() / "clips", corpus.folder() / "unmounted");
  CHECK(corpus.run(rows_pipeline("labels: none"), Update::append)
            .error.find("cannot list the folder") != std::string::npos);
  corpus.folder().folder("clips");
  CHECK(corpus.run(rows_pipeline("labels: none"), Update::append)
            .error.find("there is no sound file in it") != std::string::npos);
  CHECK(read_bytes(corpus.out()) == before);
}

TEST_CASE("update: an output that cannot be looked at is not taken for none") {
  Corpus corpus;
  corpus.clips("a", 0, 5);
  REQUIRE(corpus.run(rows_pipeline("labels: none")).complete());
  REQUIRE(::chmod((corpus.folder() / "out").c_str(), 0) == 0);
  const std::string error =
      corpus.run_as_other(rows_pipeline("labels: none", "overwrite: true"), Update::append).error;
  CHECK(error.starts_with(corpus.out()));  // whichever of its files is checked first
  CHECK(error.find(": cannot be looked at") != error.npos);
}

TEST_CASE("update: files that are there and not listed any more are no fewer rows") {
  Corpus corpus;
  corpus.clips("a", 0, 10);
  corpus.clips("b", 10, 20);
  REQUIRE(corpus.run(rows_pipeline("labels: none")).complete());
  const JobResult job = corpus.run(rows_pipeline("exclude: 'b/**'"), Update::append);
  CHECK(job.error.find("10 of its 20 files with rows (50 of 100 rows)") != job.error.npos);
  // A manifest that names files on a disk that is not mounted.
  std::string list;
  for (int i = 0; i < 10; ++i) list += fmt::format("a/{}.wav\nb/{}.wav\n", i, 10 + i);
  const std::string manifest = corpus.folder().write("list.txt", list);
  std::filesystem::rename(corpus.folder() / "clips/b", corpus.folder() / "elsewhere");
  const JobResult listed =
      corpus.run(rows_pipeline("manifest: '" + manifest + "'"), Update::append);
  CHECK(listed.error.find("10 of its 20 files with rows (50 of 100 rows)") != listed.error.npos);
}

TEST_CASE("update: files keep their split, in every kind of output, and each is counted") {
  struct Row {
    const char* stage;
    const char* name;
    const char* write;
  };
  const Row rows[] = {{"hdf5_write", "out.h5", "layout: contiguous"},
                      {"hdf5_write", "out.h5", "compression: deflate"},
                      {"npy_write", "out.npy", "split_files: false"},
                      {"hdf5_write", "out.h5", "split_files: true"}};
  for (const Row& row : rows) {
    CAPTURE(std::string(row.stage));
    CAPTURE(std::string(row.write));
    Corpus corpus;
    corpus.clips("a", 0, 40);
    const auto yaml = [&](const std::string& more) {
      return rows_pipeline("splits: ratio" + more, row.write, row.stage);
    };
    const auto outputs = [&] {
      std::map<std::string, std::string> all;
      for (const char* split : {"", ".train", ".val", ".test"}) {
        std::string path = corpus.out(row.name);
        path.insert(path.rfind('.'), split);
        if (!std::filesystem::exists(path)) continue;
        for (const auto& [file, name] : splits_of(path)) all[file] = name;
      }
      return all;
    };
    REQUIRE(corpus.run(yaml(""), Update::none, row.name).complete());
    const auto before = outputs();
    REQUIRE(before.size() == 40);
    corpus.clips("a", 40, 60);
    const JobResult job = completed(corpus.run(yaml(""), Update::append, row.name));
    CHECK(entry(job, "kept_files") == "40");
    CHECK(job.report.warnings.empty());
    const auto after = outputs();
    REQUIRE(after.size() == 60);
    for (const auto& [path, split] : before) CHECK(after.at(path) == split);
    CHECK(
        std::regex_replace(entry(job, "splits"), std::regex(R"(, "seconds"[^}]*)"), "") ==
        R"([{"name": "train", "files": 48, "rows": 240}, {"name": "val", "files": 6, "rows": 30}, )"
        R"({"name": "test", "files": 6, "rows": 30}])");

    const JobResult moved = completed(
        corpus.run(yaml(", split_seed: 5, split_update: redraw"), Update::append, row.name));
    for (const char* split : {"", ".train", ".val", ".test"}) {
      std::string path = corpus.out(row.name);
      path.insert(path.rfind('.'), split);
      if (path.ends_with(".h5") && std::filesystem::exists(path)) (void)read_output(path);
    }
    REQUIRE(moved.report.warnings.size() == 1);
    CHECK(moved.report.warnings[0].find(
              " of 60 files of the earlier output are in another split now: ") !=
          std::string::npos);
  }
}

}  // namespace melflow::test::update_losses_test
