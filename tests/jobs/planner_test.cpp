// A mode of one's own: a planner that is not the program's, here one that takes the files of one
// label from an existing output.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <string>

#include "config/load.h"
#include "pipeline/base/problem.h"
#include "stages/corpus/frozen_corpus.h"
#include "stages/manifest.h"
#include "stages/output/earlier_rows.h"
#include "stages/output/output_planner.h"
#include "tests/support/audio_files.h"
#include "tests/support/job.h"
#include "tests/support/temp_folder.h"
#include "tests/support/watchdog.h"

namespace melflow::test::planner_test {

namespace fs = std::filesystem;

namespace {

constexpr const char* kPipeline = R"(version: 1
graph:
  files: {stage: file_list, root: "${DATA}", labels: top_dir}
  read: {stage: disk_read, from: files}
  decode: {stage: decode, from: read}
  mel: {stage: mel, from: decode, sample_rate: 8000, n_fft: 256, hop: 256, center: false,
        n_mels: 20}
  write: {stage: hdf5_write, from: mel, path: "${OUT}"}
)";

class Selection final : public OutputPlanner {
 public:
  Selection(std::string path, std::string folder, bool copies_first)
      : path_(std::move(path)), folder_(std::move(folder)), copies_first_(copies_first) {}
  void look(const PlannedOutput& output) override {
    from_ = EarlierRows::find(path_, output.sink.feature_settings(), false, 1);
  }
  RowPlan plan(const PlannedOutput& output, const OutputSections&) override {
    RowPlan plan{.sections = {{}}, .copies_first = copies_first_};
    std::size_t file = 0;
    for (std::size_t e = 0; e < from_->file().files().size(); ++e)
      if (from_->entry(e).path.starts_with(folder_)) {
        CHECK(manifest_source(output.run)->manifest().name(file) == from_->entry(e).path);
        plan.sections[0].add(file++, PlannedRange::From::giver, PlannedRange::Found::unchanged,
                             from_, e);
      }
    return plan;
  }

 private:
  const std::string path_, folder_;
  const bool copies_first_;
  std::shared_ptr<EarlierRows> from_;
};

struct Example {
  TempFolder folder;
  Example() {
    for (const char* label : {"a", "b", "c"})
      for (unsigned i = 0; i < 5; ++i)
        write_wav(folder.file(fmt::format("clips/{}/{}.wav", label, i)), 3000 + 200 * i, 8000, i);
    folder.write("clips/b/broken.wav", "no sound");
    REQUIRE(run_job(kPipeline, in_out(folder / "clips", folder / "all.h5")).complete());
    fs::rename(folder / "clips", folder / "gone");  // nothing can be computed any more
  }

  // Writes the files below `of` to `out`.
  [[nodiscard]] RunReport select(const std::string& of, const std::string& out,
                                 bool copies_first) const {
    Plan plan = load_plan_text(kPipeline, "p.yaml", in_out(folder / "clips", folder / out));
    auto corpus = std::make_shared<FrozenCorpus>();
    corpus->manifest = Manifest(whole_root(folder.path()) + "clips/");
    const FeatureFile all(folder / "all.h5");
    for (const FeatureFile::Entry& file : all.files())
      if (file.path.starts_with(of)) {
        const std::size_t slash = file.path.rfind('/') + 1;
        corpus->manifest.add(corpus->manifest.add_folder(file.path.substr(0, slash)),
                             file.path.substr(slash));
        corpus->manifest.set_label(corpus->manifest.size() - 1, file.path.substr(0, slash - 1));
      }
    corpus->manifest.close();
    set_task(plan.services, {.corpus = corpus, .planner = [this, of, copies_first] {
                               return std::make_unique<Selection>(folder / "all.h5", of,
                                                                  copies_first);
                             }});
    Runner runner(std::move(plan));
    return runner.run();
  }
};

}  // namespace

TEST_CASE("planner: rows of an existing output, before the graph begins or at their turn") {
  const Watchdog watchdog("planner");
  const Example example;
  const Output all = read_output(example.folder / "all.h5");
  const FeatureFile before(example.folder / "all.h5");
  std::map<std::string, const FeatureFile::Entry*> entries;
  for (const FeatureFile::Entry& e : before.files()) entries[e.path] = &e;
  for (const bool copies_first : {true, false}) {
    CAPTURE(copies_first);
    const std::string name = copies_first ? "first.h5" : "turn.h5";
    const RunReport report = example.select("b/", name, copies_first);
    CHECK(report.error == "");
    CHECK(report.ending == Ending::complete);
    CHECK(report.counts.ok == 5);
    CHECK(report.counts.failed == 1);
    const Output made = read_output(example.folder / name);
    CHECK(made.files.size() == 6);
    const FeatureFile file(example.folder / name);
    for (const FeatureFile::Entry& e : file.files()) {
      const FeatureFile::Entry& was = *entries.at(e.path);
      CHECK(e.status == was.status);
      CHECK(e.stamp == was.stamp);
      CHECK(e.rows_hash == was.rows_hash);
      if (e.count > 0) CHECK(made.rows_of(e.path) == all.rows_of(e.path));
    }
    for (const char* left : {".part", ".journal"})
      CHECK_FALSE(fs::exists(example.folder / (name + left)));
  }
  CHECK(read_output(example.folder / "first.h5")
            .difference(read_output(example.folder / "turn.h5"))
            .empty());
}

TEST_CASE("planner: damaged rows are not copied, and leave nothing") {
  const Watchdog watchdog("planner: damage");
  const Example example;
  const FeatureFile before(example.folder / "all.h5");
  const FeatureFile::Entry& e = before.files().at(7);
  REQUIRE(e.path == "b/2.wav");
  {
    std::fstream file(example.folder / "all.h5", std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(static_cast<std::streamoff>(
        *before.rows_at() + static_cast<std::uint64_t>(e.offset) * 20 * sizeof(float)));
    file.put('x');
  }
  for (const bool copies_first : {true, false}) {
    std::string error;
    try {
      error = example.select("b/", "out.h5", copies_first).error;
    } catch (const RunError& thrown) {
      error = thrown.what();  // copied before the graph began
    }
    CHECK_MESSAGE(error.find("the rows of b/2.wav are not what was written") != std::string::npos,
                  error);
    for (const char* left : {"", ".part", ".journal"})
      CHECK_FALSE(fs::exists(example.folder / (std::string("out.h5") + left)));
    CHECK(example.select("a/", "a.h5", copies_first).ending == Ending::complete);
    fs::remove(example.folder / "a.h5");
  }
}

}  // namespace melflow::test::planner_test
