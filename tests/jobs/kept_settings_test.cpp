// Given numbers are kept, or their replacement is reported once.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <string>
#include <vector>

#include "config/load.h"
#include "tests/support/audio_files.h"
#include "tests/support/job.h"
#include "tests/support/temp_folder.h"

namespace melflow::test::kept_settings_test {
namespace {

constexpr int kRate = 8000, kFiles = 24;

struct Corpus {
  Corpus() {
    for (unsigned i = 0; i < kFiles; ++i)
      write_wav(folder.file(fmt::format("clips/{:02}.wav", i)), 2 * kRate, kRate, i);
    options.vars = {{"DATA", folder / "clips"}, {"OUT", folder / "out.h5"}};
  }

  struct Given {
    std::string files{}, decode{}, batch{}, mel{}, memory = "256MiB";
  };
  [[nodiscard]] static std::string yaml(const Given& g) {
    return fmt::format(R"(version: 1
workers: 2
memory: {{host: {}}}
graph:
  files: {{stage: file_list, root: "${{DATA}}"{}}}
  read: {{stage: disk_read, from: files}}
  decode: {{stage: decode, from: read{}}}
  segment: {{stage: segment, from: decode, length: 400}}
  batch: {{stage: batch, from: segment{}}}
  mel: {{stage: mel, from: batch, sample_rate: 8000, n_fft: 400, hop: 400, center: false, n_mels: 20{}}}
  write: {{stage: hdf5_write, from: mel, path: "${{OUT}}", overwrite: true}}
)",
                       g.memory, g.files, g.decode, g.batch, g.mel);
  }
  // The warnings of validate and of a run.
  [[nodiscard]] std::vector<std::string> planned(const Given& g) const {
    std::vector<std::string> out;
    for (const Problem& p : load_plan_text(yaml(g), "test.yaml", options).warnings)
      out.push_back(p.message);
    return out;
  }
  [[nodiscard]] std::vector<std::string> ran(const Given& g) const {
    const JobResult job = completed(run_job(yaml(g), options));
    REQUIRE(job.report.counts.ok == kFiles);
    std::vector<std::string> out = job.report.warnings;
    for (std::string& text : out)  // the plan's warnings have positions
      if (text.starts_with("test.yaml:")) text.erase(0, text.find(' ') + 1);
    return out;
  }
  [[nodiscard]] std::string bytes() const { return read_bytes(folder / "out.h5"); }

  TempFolder folder;
  LoadOptions options;
};

using Texts = std::vector<std::string>;

}  // namespace

TEST_CASE("kept settings: a number of files a batch that its bytes do not allow") {
  const Corpus corpus;
  // 2 s at 8000 Hz in 16 bits are 32,000 bytes, and 8 MiB hold 262.2 of them.
  const std::string wrong = ", files: 3072",
                    said =
                        "batch.files: 3072 do not come together: bytes, which is 8MiB where it "
                        "is not set, is reached with 263 at most. Write bytes: 94MiB for so "
                        "many, or a smaller number";
  CHECK(corpus.planned({.decode = ", fit: 2s", .batch = wrong}) == Texts{said});
  CHECK(corpus.ran({.decode = ", fit: 2s", .batch = wrong}) == Texts{said});
  const std::string told = corpus.bytes();
  // The warning does not concern the rows, so the output does not have it.
  CHECK(corpus.ran({.decode = ", fit: 2s"}).empty());
  CHECK(corpus.bytes().find("come together") == std::string::npos);
  CHECK(told.find("come together") == std::string::npos);
  for (const char* right : {"", ", files: 262", ", files: 3072, bytes: 94MiB",
                            ", files: 3072, bytes: 8MiB", ", bytes: 64KiB"}) {
    CAPTURE(std::string(right));
    CHECK(corpus.planned({.decode = ", fit: 2s", .batch = right}).empty());
  }
  // Where lengths are not known before the run, nothing can be said.
  CHECK(corpus.planned({.batch = wrong}).empty());
  CHECK(corpus.ran({.batch = wrong}).empty());  // fewer files in total
  CHECK(corpus.planned({.decode = ", fit: 100000s", .batch = wrong}).empty());
}

TEST_CASE("kept settings: a number of files a batch that only the run can know") {
  Corpus corpus;
  for (unsigned i = 0; i < kFiles; ++i)  // 2 MB of samples each, in blocks of 512 KiB
    write_wav(corpus.folder.file(fmt::format("clips/{:02}.wav", i)), 1'000'000, kRate, i);
  const Texts told = corpus.ran({.batch = ", files: 40"});
  REQUIRE(told.size() == 1);
  CHECK(told[0].starts_with("batch.files: 40 do not come together: bytes, which is 8MiB"));
  CHECK(corpus.ran({.batch = ", files: 4"}).empty());
  CHECK(corpus.ran({.batch = ", files: 40, bytes: 8MiB"}).empty());
}

TEST_CASE("kept settings: a number of files a task that memory.host has no room for") {
  const Corpus corpus;
  const std::string given = ", files_per_task: 2048";
  const auto has = [](const Texts& told) {
    return told.size() == 1 &&
           told[0].starts_with(
               "files.files_per_task: 2048 files do not find room in a task, which may take 1/12 "
               "of memory.host (256MiB): tasks have at most ");
  };
  const Texts before = corpus.planned({.files = given, .decode = ", fit: 2s"});
  CAPTURE(before);
  REQUIRE(has(before));
  CHECK(corpus.ran({.files = given, .decode = ", fit: 2s"}) == before);
  CHECK(corpus.bytes().find("find room") == std::string::npos);
  // Uses the value that the warning recommends.
  const std::string size = before[0].substr(before[0].rfind("memory.host: ") + 13);
  CHECK(corpus
            .planned(
                {.files = given, .decode = ", fit: 2s", .memory = size.substr(0, size.find(' '))})
            .empty());
  // A shorter list does not matter, and files of unknown length may be short.
  CHECK(corpus.planned({.files = ", files_per_task: 16", .decode = ", fit: 2s"}).empty());
  CHECK(corpus.planned({.files = ", files_per_task: 500"}).empty());
}

TEST_CASE("kept settings: operands of devices where the CPU computes") {
  const Corpus corpus;
  const std::string given = ", backend: auto, operands: bf16";
  const Texts told = corpus.planned({.mel = given});
  REQUIRE(told.size() == 1);
  CHECK(told[0].starts_with(
      "mel.operands: bf16 has no effect: rows are computed on the CPU, in fp32 ("));
  CHECK(corpus.ran({.mel = given}) == told);
  CHECK(corpus.planned({.mel = ", backend: auto, operands: fp32"}).empty());
  CHECK(corpus.planned({.mel = ", operands: bf16"}).size() == 1);  // backend: cpu
  CHECK_THROWS_AS(
      (void)corpus.planned({.mel = ", backend: auto, accumulate: {bytes: 1MiB, batches: 4}"}),
      ConfigError);
}

}  // namespace melflow::test::kept_settings_test
