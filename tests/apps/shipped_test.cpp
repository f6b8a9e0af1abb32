// Names of pipelines that come with melflow.
#include <doctest/doctest.h>

#include <filesystem>

#include "tests/apps/process.h"

using namespace melflow;
using test::Ended;
using test::has;
using test::TempFolder;

TEST_CASE("shipped: a folder called like a pipeline that comes with melflow does not hide that") {
  const TempFolder folder;
  std::filesystem::create_directories(folder / "demo");
  std::filesystem::create_directories(folder / "mine");
  const auto call = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), MELFLOW_PROGRAM);
    return test::run(folder, arguments);
  };
  const Ended shipped = call({"validate", "demo", "--var", "DATA=demo", "--var", "OUT=o.h5"});
  INFO(shipped.err);
  CHECK(shipped.code == 0);
  CHECK(call({"inspect", "--features", "demo"}).code == 0);
  for (const char* path : {"mine", "./demo", "demo/"}) {
    CAPTURE(std::string(path));
    const Ended e = call({"validate", path});
    CHECK(e.code == 78);
    CHECK(has(e.err, "folder"));
  }
}
