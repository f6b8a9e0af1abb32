// Compares the pipelines of docs/recipes.md with the libraries' calls that they replace, as stored
// by tests/golden/make_recipes.py.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "tests/support/audio_files.h"
#include "tests/support/doc_blocks.h"
#include "tests/support/job.h"
#include "tests/support/python.h"
#include "tests/support/source_path.h"
#include "tests/support/temp_folder.h"

namespace melflow::test::recipes_test {
namespace {

// Silence, then swelling noise, as in make_recipes.py.
void write_signal(const std::string& path, int rate) {
  std::vector<float> samples(1200, 0.0F);
  for (std::int64_t i = 1200; i < 4000; ++i) {
    const std::int64_t value = (i * i * 7 % 16001) * (i % 3000) / 3000 - 4000;
    samples.push_back(static_cast<float>(value) / 32768);
  }
  write_audio(path, audio_kind("wav s16"), rate, samples);
}

std::string pipeline(const std::string& nodes) {
  std::string out = R"(version: 1
graph:
  files: {stage: file_list, root: "${DATA}"}
  read: {stage: disk_read, from: files}
  decode: {stage: decode, from: read}
  batch: {stage: batch, from: segment}
)" + nodes;
  if (nodes.find("  segment:") == std::string::npos)
    out += "  segment: {stage: segment, from: decode}\n";
  const char* last = nodes.find("  mfcc:") != std::string::npos ? "mfcc" : "mel";
  return out +
         fmt::format(
             "  write: {{stage: hdf5_write, from: {}, path: \"${{OUT}}\", overwrite: true}}\n",
             last);
}

}  // namespace

TEST_CASE("recipes: the pipeline of each gives what the library's call gives") {
  const TempFolder folder;
  const std::map<std::string, std::string> all = blocks_of("docs/recipes.md", "yaml", "### ");
  std::ifstream file(source_path("tests/golden/recipes.json"));
  const auto expected = nlohmann::json::parse(file);
  CHECK(all.size() == expected.size());
  for (const auto& recipe : expected) {
    const std::string title = recipe["title"];
    CAPTURE(title);
    REQUIRE(all.count(title) == 1);
    write_signal(folder.file("clips/signal.wav"), recipe["rate"]);
    completed(run_job(pipeline(all.at(title)), in_out(folder / "clips", folder / "out.h5")));
    const Output out = read_output(folder / "out.h5");
    const std::size_t bands = recipe["bands"], frames = recipe["frames"];
    REQUIRE(out.mel.size() == frames * bands);
    // Compares linear values relative to the frame's largest, levels and coefficients directly.
    const bool is_linear = out.unit == "power" || out.unit == "amplitude";
    std::size_t at = 0;
    double worst = 0;
    for (const auto& row : recipe["rows"]) {
      double largest = 0;
      for (const double v : row) largest = std::max(largest, std::abs(v));
      for (const double v : row) {
        const double allowed = is_linear ? 1e-4 * v + 1e-6 * largest : 2e-3;
        worst = std::max(worst, std::abs(out.mel[at++] - v) / allowed);
      }
    }
    CHECK(worst <= 1);
  }
}

TEST_CASE("recipes: Whisper's rows are read as the model takes them, with their frames") {
  const TempFolder folder;
  // Named by their number of samples: none, one, exactly a row, one more, two rows and a part.
  for (const int samples : {1, 160, 161, 16000, 480000, 480001, 1000123})
    write_audio(folder.file(fmt::format("clips/{}.wav", samples)), audio_kind("wav s16"), 16000,
                test_signal(samples));
  CHECK(completed(run_job(pipeline(blocks_of("docs/recipes.md", "yaml", "### ")
                                       .at("Whisper: transformers' feature extractor")),
                          in_out(folder / "clips", folder / "features.h5")))
            .report.counts.ok == 7);
  CHECK(python_says("jobs/read_recipes.py",
                    fmt::format("'{}' '{}'", source_path("docs/recipes.md"), folder.path())) == "");
}

}  // namespace melflow::test::recipes_test
