// Figures of a run, compared with hand calculations.
#include "apps/profile/figures.h"

#include <doctest/doctest.h>

namespace melflow::figures_test {
namespace {

RunReport known_run() {
  RunReport r;
  r.wall_seconds = 5;
  r.graph_seconds = 4;
  r.counts = {.found = 100, .ok = 70, .skipped = 10, .failed = 10, .not_run = 10};
  r.usage.user_seconds = 8;
  r.usage.system_seconds = 2;
  r.usage.has_disk = true;
  r.usage.disk_read_bytes = 250;
  r.bytes_read = 1000;
  return r;
}

}  // namespace

TEST_CASE("figures: of the run") {
  const RunFigures f = run_figures(known_run());
  CHECK(f.files == 90);
  CHECK(f.files_per_second == doctest::Approx(18));
  CHECK(f.cores_used == doctest::Approx(2));
  CHECK(f.page_cache_share == doctest::Approx(0.75));
  CHECK(f.disk_read_per_second == doctest::Approx(50));
}

TEST_CASE("figures: files that an update kept are no work of the run") {
  RunReport r = known_run();
  r.kept = 60;
  CHECK(run_figures(r).files == 30);
  CHECK(run_figures(r).files_per_second == doctest::Approx(6));
}

TEST_CASE("figures: the disk may read more than was asked for, and may not be known at all") {
  RunReport r = known_run();
  r.usage.disk_read_bytes = 4000;  // read-ahead
  CHECK(run_figures(r).page_cache_share == 0);
  r.usage.has_disk = false;
  CHECK(run_figures(r).page_cache_share == 0);
  CHECK(run_figures(RunReport{}).files_per_second == 0);
}

TEST_CASE("figures: of a stage, each where it has a meaning") {
  const RunReport r = known_run();
  StageReport s;
  s.items_out = 80;
  CHECK(stage_figures(s, r).files_per_second == doctest::Approx(20));  // a source
  s = {};
  s.items_in = 200;
  s.files_in = 40;
  s.items_out = 200;
  s.bytes_in = 400;
  s.bytes_out = 800;
  s.rows_out = 1200;
  s.time.busy = 6;
  const StageFigures f = stage_figures(s, r);
  CHECK(f.files_per_second == doctest::Approx(10));
  CHECK(f.bytes_in_per_second == doctest::Approx(100));
  CHECK(f.bytes_out_per_second == doctest::Approx(200));
  CHECK(f.rows_per_second == doctest::Approx(300));
  CHECK(f.used == doctest::Approx(1.5));
  s.items_out = s.rows_out = 0;  // a sink
  s.rows_in = 600;
  CHECK(stage_figures(s, r).rows_per_second == doctest::Approx(150));
}

}  // namespace melflow::figures_test
