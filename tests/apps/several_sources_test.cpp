// Several corpora in one output, with the program: jobs, recomputing, and messages.
#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "stages/output/formats/feature_file.h"
#include "tests/apps/process.h"
#include "tests/support/audio_files.h"

namespace melflow::test::several_sources_test {

namespace fs = std::filesystem;

namespace {

// Recordings of two corpora with common names; one is no sound.
void make_corpora(const TempFolder& folder, const std::string& options = "labels: top_dir",
                  const std::string& write = "path: out.h5") {
  for (unsigned i = 0; i < 12; ++i)
    for (const char* corpus : {"one", "two"}) {
      const std::string path = fmt::format("{}/{}/{:02}.wav", corpus, "ab"[i % 2], i);
      fs::create_directories(fs::path(folder / path).parent_path());
      if (i == 5 && corpus == std::string("two"))
        test::write_text(folder / path, "no sound");
      else
        test::write_wav(folder / path, 2500 + 170 * i, 8000, i + (corpus[0] == 'o' ? 50U : 0U));
    }
  test::write_text(folder / "p.yaml", fmt::format(R"(version: 1
graph:
  train: {{stage: file_list, root: one, {0}}}
  extra: {{stage: file_list, root: two, {0}}}
  read: {{stage: disk_read, from: [train, extra]}}
  decode: {{stage: decode, from: read}}
  segment: {{stage: segment, from: decode}}
  batch: {{stage: batch, from: segment}}
  mel: {{stage: mel, from: batch, sample_rate: 8000, n_fft: 256, hop: 80, n_mels: 20}}
  write: {{stage: hdf5_write, from: mel, {1}}}
)",
                                                  options, write));
}

void run_it(const TempFolder& folder) { exits(3, melflow_in(folder, {"run", "p.yaml", "-q"})); }

}  // namespace

TEST_CASE("several sources: a job on several machines makes the bytes of one run") {
  for (const char* options :
       {"labels: top_dir", "splits: ratio, split_ratios: {train: 60, test: 40}"}) {
    CAPTURE(std::string(options));
    const TempFolder folder;
    make_corpora(folder, options);
    run_it(folder);
    const std::string bytes = test::read_text(folder / "out.h5");
    fs::remove(folder / "out.h5");
    exits(0, melflow_in(folder, {"plan", "p.yaml", "--part", "10KiB", "-o", "job"}));
    exits(0, melflow_in(folder, {"work", "job", "-q"}));
    exits(3, melflow_in(folder, {"merge", "job", "-q"}));
    CHECK(test::read_text(folder / "out.h5") == bytes);
  }
}

TEST_CASE("several sources: files are recomputed from the folder of each") {
  const TempFolder folder;
  make_corpora(folder);
  run_it(folder);
  exits(0, melflow_in(folder, {"verify", "out.h5", "--recompute", "100%"}));
  fs::rename(folder / "two", folder / "three");
  CHECK(has(melflow_in(folder, {"verify", "out.h5", "--recompute", "100%"}).err,
            "its recordings of extra were in the folder 'two', which does not exist here"));
}

TEST_CASE("several sources: rows that are damaged are recomputed") {
  const TempFolder folder;
  make_corpora(folder);
  run_it(folder);
  const std::string bytes = test::read_text(folder / "out.h5");
  {
    const FeatureFile file(folder / "out.h5");
    REQUIRE(file.rows_at());
    const auto row_bytes = static_cast<std::streamoff>(file.bands() * sizeof(float));
    std::fstream rows(folder / "out.h5", std::ios::in | std::ios::out | std::ios::binary);
    for (const FeatureFile::Entry& e : file.files())
      if (e.path == "train/a/02.wav" || e.path == "extra/a/02.wav") {
        rows.seekp(static_cast<std::streamoff>(*file.rows_at()) + e.offset * row_bytes + 8);
        rows.put('x');
      }
  }
  REQUIRE(test::read_text(folder / "out.h5") != bytes);
  const Ended repaired = exits(0, melflow_in(folder, {"repair", "out.h5"}));
  CHECK(has(repaired.out, "train/a/02.wav"));
  CHECK(has(repaired.out, "extra/a/02.wav"));
  CHECK(test::read_text(folder / "out.h5") == bytes);
}

TEST_CASE("several sources: the plan is told with every source, and what joins them") {
  const TempFolder folder;
  make_corpora(folder);
  const Ended e = exits(0, melflow_in(folder, {"validate", "--explain", "p.yaml"}));
  CHECK(has(e.out, "train (file_list): gives file\n"));
  CHECK(has(e.out, "extra (file_list): gives file\n"));
  CHECK_FALSE(has(e.out, "sources (file_list)"));
  CHECK(has(e.out, "train, extra"));
  CHECK(has(e.out, "ok: 8 nodes"));
  const Ended graph = melflow_in(folder, {"graph", "p.yaml"});
  CHECK(has(graph.out, "  n0[\"sources<br/>file_list × 1\"]\n"));
  CHECK(has(graph.out, "  s1[\"extra<br/>file_list\"]\n  s1 --> n0\n"));
  CHECK(has(graph.out, "  n0 -->|\"extra: file, queue "));
}

TEST_CASE("several sources: reports, the index and pictures call a file by its source") {
  const TempFolder folder;
  make_corpora(folder);
  const Ended ran = melflow_in(folder, {"run", "p.yaml", "--json"});
  CHECK(nlohmann::json::parse(ran.out).dump().find("extra/b/05.wav") != std::string::npos);
  const Ended inspected = melflow_in(folder, {"inspect", "out.h5", "--json"});
  CHECK(nlohmann::json::parse(inspected.out).at("sources").dump() ==
        R"([{"name":"train","root":"one"},{"name":"extra","root":"two"}])");
  exits(0, melflow_in(folder, {"show", "out.h5", "--file", "extra/a/02.wav", "-o", "p.svg"}));
  CHECK(melflow_in(folder, {"verify", "out.h5"}).code == 0);
}

TEST_CASE("several sources: the input of a test takes the place of all of them") {
  const TempFolder folder;
  make_corpora(folder);
  std::ofstream(folder / "p.yaml", std::ios::app) << R"(tests:
  small:
    input: {stage: synthetic, kind: tone, count: 3, duration: 1s, rate: 8kHz}
    expect: {ok: 6}
)";
  exits(0, melflow_in(folder, {"test", "p.yaml"}));
}

}  // namespace melflow::test::several_sources_test
