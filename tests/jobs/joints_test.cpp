// Every shipped pipeline runs on exactly the oneTBB graph that its plan demands.
#include <doctest/doctest.h>

#include <filesystem>

#include "tests/support/audio_files.h"
#include "tests/support/expected_joints.h"
#include "tests/support/job.h"
#include "tests/support/printing.h"
#include "tests/support/source_path.h"
#include "tests/support/temp_folder.h"
#include "tests/support/watchdog.h"

namespace melflow::joints_test {

namespace fs = std::filesystem;

namespace {

// Uses another plan of the same text, since a stage is asked for its engine only once.
std::vector<std::string> demanded(const fs::path& file, const LoadOptions& options) {
  const Plan plan = load_plan(file, options);
  std::vector<test::JointNode> nodes;
  for (const PlanNode& n : plan.nodes) {
    const bool has_engine =
        n.faces.engine != nullptr && n.faces.engine->engine(n.concurrency) != nullptr;
    nodes.push_back({n.name, n.from(), !n.resources.blocking && !has_engine});
  }
  return test::expected_joints(nodes);
}

}  // namespace

TEST_CASE("joints: shipped pipelines, with every way of reading") {
  std::size_t pipelines = 0;
  for (const auto& entry : fs::directory_iterator(test::source_path("config/pipelines"))) {
    if (entry.path().extension() != ".yaml") continue;
    ++pipelines;
    for (const std::string engine : {"inline", "threads", "io_uring"}) {
      const std::string name = entry.path().filename();
      CAPTURE(name);
      CAPTURE(engine);
      const test::Watchdog watchdog("joints: " + name);
      const test::TempFolder folder;
      // Where a pipeline takes only another rate, the files fail.
      for (int i = 0; i < 12; ++i)
        test::write_wav(folder.file("data/train/a/" + std::to_string(i) + ".wav"), 4096, 4096, i);
      LoadOptions options = test::in_out(folder / "data", folder / "out.h5");
      options.sets.push_back({"read.engine", engine});
      options.workers = 2;
      Runner runner(load_plan(entry.path(), options));
      const RunReport report = runner.run();
      CHECK(report.counts.ok + report.counts.failed == 12);
      CHECK(report.error.empty() == (report.counts.ok > 0));
      CHECK(test::joints_of(report) == demanded(entry.path(), options));
    }
  }
  CHECK(pipelines >= 7);
}

}  // namespace melflow::joints_test
