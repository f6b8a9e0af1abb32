// Pipelines that come with melflow, and the first one of the README.
#include <doctest/doctest.h>

#include <filesystem>

#include "tests/apps/process.h"
#include "tests/apps/sound.h"
#include "tests/support/doc_blocks.h"

namespace melflow::test::shipped_test {

TEST_CASE("shipped: a folder called like a pipeline that comes with melflow does not hide that") {
  const TempFolder folder;
  std::filesystem::create_directories(folder / "demo");
  std::filesystem::create_directories(folder / "mine");
  const auto call = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), MELFLOW_PROGRAM);
    return test::run(folder, arguments);
  };
  exits(0, call({"validate", "demo", "--var", "DATA=demo", "--var", "OUT=o.h5"}));
  CHECK(call({"inspect", "--features", "demo"}).code == 0);
  for (const char* path : {"mine", "./demo", "demo/"}) {
    CAPTURE(std::string(path));
    CHECK(has(exits(78, call({"validate", path})).err, "folder"));
  }
}

TEST_CASE("shipped: the README's first pipeline runs, and is drawn as the README shows it") {
  const TempFolder folder;
  const auto yaml = test::blocks_of("README.md", "yaml", "## ");
  REQUIRE(yaml.contains("A first pipeline"));
  test::write_text(folder / "first.yaml", yaml.at("A first pipeline"));
  test::write_clip(folder / "clips/dog/a.wav", 22050, 1);
  const auto call = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), MELFLOW_PROGRAM);
    for (const char* more : {"first.yaml", "--var", "DATA=clips", "--var", "OUT=features.h5"})
      arguments.emplace_back(more);
    return test::run(folder, arguments);
  };
  CHECK(exits(0, call({"run"})).err.empty());
  CHECK(call({"graph", "--workers", "2"}).out ==
        test::blocks_of("README.md", "mermaid", "## ").at("The graph"));
}

TEST_CASE("shipped: the tests of the pipelines that come with melflow pass") {
  const TempFolder folder;
  const Ended e = exits(
      0, test::run(folder, {MELFLOW_PROGRAM, "test", "speech_16k_80mel", "whisper", "kaldi_mfcc"}));
  CHECK(has(e.out, "3 tests: 3 passed, 0 failed"));
}

}  // namespace melflow::test::shipped_test
