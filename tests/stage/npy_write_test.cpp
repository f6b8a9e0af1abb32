#include <doctest/doctest.h>
#include <fmt/format.h>

#include <filesystem>

#include "tests/stage/sink_jobs.h"
#include "tests/support/printing.h"
#include "tests/support/skip.h"
#include "tests/support/small_disk.h"
#include "tests/support/source_path.h"

namespace melflow::test::npy_write_test {
namespace {

// Returns the names of a document's entries, one of which begins each line.
std::vector<std::string> entries_of(const std::string& document) {
  std::vector<std::string> out;
  for (std::size_t at = 0; (at = document.find("\n\"", at)) != std::string::npos; ++at)
    out.push_back(document.substr(at + 2, document.find('"', at + 2) - at - 2));
  return out;
}

}  // namespace

TEST_CASE("npy_write: rows, index and document are as documented, and as hdf5_write has them") {
  const Filled<make_corpus> folder;
  struct Row {
    const char* what;
    SinkJob options;
    std::size_t axes;
    std::string type;
  };
  const Row rows[] = {
      {"frames", {}, 2, "float32"},
      {"windows of one frame",
       {.segment = "length: 256", .mel = "center: false, log: db"},
       2,
       "float32"},
      {"windows of several frames", {.segment = "length: 1024"}, 3, "float32"},
      {"float16", {.write = "dtype: float16"}, 2, "float16"},
      {"bfloat16", {.write = "dtype: bfloat16"}, 2, "bfloat16"},
      {"an energy", {.mel = "use_energy: true, htk_compat: true"}, 2, "float32"},
      {"a preset", {.mel = "preset: whisper, log: db"}, 2, "float32"},
      {"on disk", {.write = "sync: true"}, 2, "float32"},
  };
  const std::string text = read_bytes(source_path("docs/output-format.md"));
  for (const Row& row : rows) {
    CAPTURE(std::string(row.what));
    const JobResult job = completed(run_sinks(pipeline_of_both(row.options), folder));
    CHECK(difference_from_h5(folder) == "");
    CHECK(names_in(folder.path()) ==
          Names{"clips", "scratch.wav", "out.h5", "out.npy", "out.index.npy", "out.index.json"});
    for (const std::string& name : entries_of(read_bytes(folder / "out.index.json")))
      CHECK_MESSAGE(text.find("`" + name + "`") != text.npos, name);
    // The report has the same entries.
    std::vector<std::string> names;
    for (const auto& [name, value] : job.stage("write").summary) {
      names.push_back(name);
      if (name == "path") CHECK(value.text() == folder / "out.npy");
      if (name == "complete") CHECK(value.text() == "true");
      if (name == "dtype") CHECK(value.text() == row.type);
      if (name == "shape") CHECK(value.items().size() == row.axes);
      if (name == "bytes")
        CHECK(value.text() == std::to_string(std::filesystem::file_size(folder / "out.npy")));
    }
    std::vector<std::string> expected{"path", "complete", "rows", "shape", "dtype", "bytes"};
    if (row.options.write == "sync: true") expected.emplace_back("sync_seconds");
    CHECK(names == expected);
    for (const char* ending : {".h5", ".npy", ".index.npy", ".index.json"})
      std::filesystem::remove(folder / (std::string("out") + ending));
  }
}

TEST_CASE("npy_write: a full disk removes all three files, whatever did not fit, and is named") {
  struct Row {
    const char* what;
    std::size_t disk;
    std::string mel;
    unsigned good, broken;
    std::string file;  ///< the one that did not fit
  };
  // A file of 256 samples makes a row of 80 bytes; its record in the index, with a name of 200
  // letters, takes 240; a broken file also has a warning of about 300 bytes.
  const Row rows[] = {
      {"the rows", 64 << 10, "center: false", 2000, 0, "out.npy.part"},
      {"the rows, which are finished at the end", 64 << 10, "center: false, ref: max, log: db",
       2000, 0, "out.npy.part"},
      {"the index", 64 << 10, "center: false", 300, 0, "out.index.npy.part"},
      {"the document", 160 << 10, "center: false", 10, 250, "out.index.json.part"},
  };
  for (const Row& row : rows) {
    CAPTURE(std::string(row.what));
    const SmallDisk disk(row.disk);
    if (!disk.ok()) {
      skip("a file system cannot be mounted here");
      return;
    }
    const TempFolder folder;
    const std::string name(200, 'x');
    for (unsigned i = 0; i < row.good; ++i)
      write_wav(folder.file(fmt::format("clips/{:04}{}.wav", i, name)), 256, kRate, i);
    for (unsigned i = 0; i < row.broken; ++i)
      folder.write(fmt::format("clips/b{:04}{}.wav", i, name), "no sound");
    const JobResult job =
        run_job(pipeline(kNpy, {.mel = row.mel}), in_out(folder / "clips", disk / "out"));
    CHECK(job.started);
    CHECK(job.report.ending == Ending::failed);
    CHECK(job.error ==
          disk / row.file +
              ": the disk is full (No space left on device). Free some space or write elsewhere "
              "(option path of the npy_write node)");
    const Ledger::Counts& c = job.report.counts;
    CHECK(c.ok + c.skipped + c.failed + c.not_run == c.found);
    // Finished work stays, so that it can be resumed.
    CHECK_FALSE(std::filesystem::exists(disk / "out.npy"));
    CHECK(std::filesystem::exists(disk / "out.npy.part"));
    CHECK(std::filesystem::exists(disk / "out.npy.journal"));
    CHECK(job.stage("write").summary.empty());
  }
}

TEST_CASE("npy_write: the path ends in .npy") {
  const TempFolder folder;
  write_wav(folder.file("clips/a.wav"), 4000, kRate);
  std::string yaml = pipeline(kNpy);
  const std::string path = "path: \"${OUT}.npy\", ";
  yaml.replace(yaml.find(path), path.size(), "path: rows.h5, ");
  LoadOptions options;
  options.vars = {{"DATA", folder / "clips"}};
  CHECK_THROWS_WITH_AS(run_job(yaml, options),
                       "test.yaml:10:46: write.path: 'rows.h5' does not end in .npy; name it "
                       "NAME.npy, since the files beside it are named after NAME",
                       ConfigError);
}

}  // namespace melflow::test::npy_write_test
