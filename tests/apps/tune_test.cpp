// melflow tune: what it writes, and what it leaves alone.
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/apps/pipelines.h"
#include "tests/apps/process.h"
#include "tests/support/audio_files.h"
#include "tests/support/printing.h"

using namespace melflow;
using test::Ended;
using test::has;
using test::TempFolder;
using Json = nlohmann::ordered_json;

namespace {

Ended tune(const TempFolder& folder, std::vector<std::string> arguments) {
  std::filesystem::create_directories(folder / "data");
  for (unsigned i = 0; i < 4; ++i)
    test::write_wav(folder / ("data/" + std::to_string(i) + ".wav"), 4000, 8000, i);
  test::write_text(folder / "p.yaml",
                   test::nodes_to_mel("root: data", "sample_rate: 8000, n_fft: 256, queue: 1") +
                       "  write: {stage: hdf5_write, from: mel, path: o.h5}\n");
  arguments.insert(arguments.begin(), {MELFLOW_PROGRAM, "tune", "p.yaml"});
  return test::run(folder, arguments);
}

}  // namespace

// What is found depends on the machine; that it is told and written alike does not.
TEST_CASE("tune: what it says and what it writes are the same, and the output stays away") {
  const TempFolder folder;
  const Ended e = tune(folder, {"-o", "tuned.yaml", "--json", "--budget", "500ms"});
  INFO(e.err);
  REQUIRE(e.code == 0);
  const Json found = Json::parse(e.out);
  CHECK(found["runs"].get<int>() >= 2);
  CHECK(std::filesystem::exists(folder / "tuned.yaml") == !found["changes"].empty());
  CHECK_FALSE(std::filesystem::exists(folder / "o.h5"));
  if (found["changes"].empty()) {
    CHECK(has(e.err, "as it is, it is as fast as with anything that was tried"));
    CHECK(has(e.err, "nothing is written"));
    return;
  }
  const std::string text = test::read_text(folder / "tuned.yaml");
  CHECK(text.starts_with("# melflow tune: with all changes "));
  for (const Json& c : found["changes"])
    CHECK(has(text, "# melflow tune: " + c["option"].get<std::string>() + " was " +
                        c["was"].get<std::string>() + "; "));
  CHECK(test::run(folder, {MELFLOW_PROGRAM, "validate", "tuned.yaml"}).code == 0);
  // Rows do not depend on it.
  CHECK(test::run(folder, {MELFLOW_PROGRAM, "compare", "p.yaml", "tuned.yaml"}).code == 0);
}

TEST_CASE("tune: bad arguments are refused before any run") {
  const TempFolder folder;
  const Ended time = tune(folder, {"--budget", "1 parsec"});
  CHECK(time.code == 2);
  CHECK(has(time.err, "'1 parsec' is no time such as 11h50m, 90s or 1.5h"));
  const Ended over = tune(folder, {"-o", "p.yaml"});
  CHECK(over.code != 0);
  CHECK(has(over.err, "p.yaml"));
  const Ended nowhere = tune(folder, {"-o", "none/tuned.yaml"});
  CHECK(nowhere.code != 0);
  CHECK(has(nowhere.err, "none"));
}
