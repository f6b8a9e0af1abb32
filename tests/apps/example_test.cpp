// The example of docs/dataset-builder.md, on real recordings of two languages.
#include <doctest/doctest.h>

#include <cstdlib>
#include <regex>

#include "tests/apps/process.h"
#include "tests/support/source_path.h"

namespace melflow::example_test {

using test::Ended;
namespace fs = std::filesystem;

TEST_CASE("example: languages are told apart by an output and a script") {
  const char* const audio = std::getenv("MELFLOW_TEST_AUDIO");
  REQUIRE_MESSAGE(audio != nullptr, "MELFLOW_TEST_AUDIO says where the recordings are");
  const test::TempFolder folder;
  fs::create_directory(folder / "data");
  for (const std::string language : {"en", "ru"}) {
    const fs::path sounds = fs::path(audio) / ("asterisk-core-sounds-" + language + "-wav") /
                            "usr/share/asterisk/sounds";
    for (const auto& voice : fs::directory_iterator(sounds))
      if (voice.is_directory() && voice.path().filename().string().starts_with(language + "_"))
        fs::create_directory_symlink(voice.path(), folder / ("data/" + language));
  }
  exits(0,
        test::run(folder,
                  {MELFLOW_PROGRAM, "run", test::source_path("config/pipelines/language_id.yaml"),
                   "--set", "files.follow_links=true"},
                  {{"DATA", "data"}, {"OUT", "out.h5"}}));
  const Ended trained =
      exits(0, test::run(folder, {"/usr/bin/python3",
                                  test::source_path("docs/examples/language_id.py"), "out.h5"}));
  // "test: 111 of 115 recordings (96.5%)"
  std::smatch found;
  REQUIRE(std::regex_search(trained.out, found, std::regex("test: (\\d+) of (\\d+) recordings")));
  CHECK(std::stoi(found[2]) >= 100);
  CHECK(std::stoi(found[1]) >= 0.85 * std::stoi(found[2]));  // one half by chance
}

}  // namespace melflow::example_test
