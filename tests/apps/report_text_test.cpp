// The summary of a run with known figures.
#include "apps/report/report_text.h"

#include <doctest/doctest.h>

#include <sstream>

#include "pipeline/base/text.h"

namespace melflow::report_text_test {
namespace {

StageReport stage_of(const std::string& name, std::size_t items) {
  StageReport s;
  s.name = name;
  s.stage = name == "files" ? "file_list" : "hdf5_write";
  s.concurrency = s.peak_concurrency = 16;
  if (name != "files") s.items_in = s.files_in = items;
  if (name != "write") s.items_out = items;
  s.bytes_in = s.bytes_out = items * 80'000;
  s.rows_in = s.rows_out = items * 237;
  s.time = {.busy = 100,
            .waiting_input = 20,
            .blocked_output = 20,
            .waiting_core = 10,
            .idle_after_end = 10};
  s.cpu_seconds = 95;
  s.service = {.calls = items, .p50 = 0.000012, .p90 = 0.0014, .p99 = 0.25, .greatest = 1250};
  return s;
}

RunReport long_run() {
  RunReport r;
  r.wall_seconds = 11;
  r.graph_seconds = 10;
  r.cores = 16;
  r.workers = 16;
  r.counts = {.found = 39'563, .ok = 39'563};
  for (const char* name : {"files", "segment", "write"}) r.stages.push_back(stage_of(name, 39'563));
  r.edges.push_back(
      {.from = "files", .to = "write", .capacity = 128, .max_depth = 128, .mean_depth = 100.5});
  r.usage.user_seconds = 88;
  r.usage.has_disk = true;
  r.usage.disk_read_bytes = 1'000'000'000;
  r.bytes_read = 4'000'000'000;
  r.first_row_seconds = 0.25;
  r.slowest = {{"a.wav", "read", {1.5, 3, 1}}, {"b.wav", "mel", {0.25, 8, 25}}};
  return r;
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("report text: tables and what explains them fit 100 columns") {
  std::istringstream lines(tables_text(long_run()));
  bool in_table = false;
  for (std::string line; std::getline(lines, line);) {
    in_table = line.starts_with("node") || (in_table && !line.empty());
    if (in_table) CHECK_MESSAGE(line.size() <= 100, line);
  }
}

TEST_CASE("report text: rates, times of a call, and what the machine did") {
  const std::string text = tables_text(long_run());
  CAPTURE(text);
  // 39,563 files of 80 kB and 237 rows in ten seconds, with 100 s of work.
  CHECK(
      has(text, "3,956      317       317  937,643  10.00  95.00   0.012  1.4  250  1,250,000\n"));
  CHECK(has(text, "processor: 8.0 of 16 cores used (88.00 s in the program"));
  CHECK(has(text, "read: 4.00 GB, 75% of it from the page cache; from the disk 91 MB/s\n"));
  CHECK(has(text, "; first rows taken after 0.25 s\n"));
  CHECK(has(text,
            "longest in one stage:\n"
            "  1.50 s in read: a.wav\n"
            "  0.25 s in mel: 25 files together, from b.wav\n"));
}

TEST_CASE("report text: an update that has nothing to do says so, without tables") {
  RunReport r = long_run();
  r.kept = r.counts.found;
  CHECK(has(tables_text(r), "at once: most/allowed"));
  for (StageReport& s : r.stages) s.items_in = s.items_out = 0;
  CHECK(tables_text(r) == "no file is new or changed: nothing was computed\n");
  r.kept = 0;
  CHECK(has(tables_text(r), "at once: most/allowed"));
}

TEST_CASE("report text: what means nothing or is not known is omitted") {
  RunReport r = long_run();
  r.usage.has_disk = false;
  r.first_row_seconds = 0;
  for (SlowFile& f : r.slowest) f.visit.seconds = 0.09;
  for (StageReport& s : r.stages) s.service = {};
  const std::string text = tables_text(r);
  CAPTURE(text);
  CHECK_FALSE(has(text, "page cache"));
  CHECK_FALSE(has(text, "first rows"));
  CHECK_FALSE(has(text, "longest in one stage"));
  CHECK(has(text, "  10.00  95.00\n"));
}

}  // namespace melflow::report_text_test
