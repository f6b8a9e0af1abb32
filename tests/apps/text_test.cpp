// Figures and progress as people read them.
#include <doctest/doctest.h>

#include "apps/report/format.h"
#include "apps/report/terminal.h"

namespace melflow::text_test {

TEST_CASE("text: figures have the form that suits their size") {
  CHECK(count_text(0) == "0");
  CHECK(count_text(999) == "999");
  CHECK(count_text(1000) == "1,000");
  CHECK(count_text(9'376'431) == "9,376,431");
  CHECK(plural(1, "file") == "1 file");
  CHECK(plural(2, "file") == "2 files");
  CHECK(rate_text(0) == "0");
  CHECK(rate_text(3.44) == "3.4");
  CHECK(rate_text(10663.4) == "10,663");
  CHECK(bytes_text(12) == "12 B");
  CHECK(bytes_text(1.2e9) == "1.20 GB");
  CHECK(megabytes_text(3.24e9) == "3,240");
  CHECK(mebibytes_text(448U << 20) == "448 MiB");
  CHECK(mebibytes_text(3U << 19) == "1.5 MiB");
  CHECK(clock_text(2.1) == "0:03");
  CHECK(clock_text(3723) == "1:02:03");
  CHECK(clock_text(1e30) == "--:--");
  CHECK(seconds_text(3.714) == "3.71 s");
  CHECK(seconds_text(760) == "12:40 min");
  CHECK(seconds_text(3723) == "1:02:03 h");
}

namespace {
Progress some(std::size_t found, std::size_t ok, std::size_t failed) {
  Progress p;
  p.counts.found = found;
  p.counts.ok = ok;
  p.counts.failed = failed;
  p.rows = 2400;
  p.bytes = 3'000'000;
  p.seconds = 4;
  return p;
}
}  // namespace

TEST_CASE("text: the bar shows share, rate, time left, failures and rows") {
  const std::string line = bar_line(some(1000, 240, 10), 50, 120);
  CAPTURE(line);
  CHECK(line.starts_with("[======>"));
  CHECK(
      line.find("]  25%  250/1,000 files  50/s  0:15 left  10 failed  2,400 rows  3.00 MB read") !=
      std::string::npos);
}

TEST_CASE("text: the bar never is wider than the terminal") {
  for (int width = 1; width < 200; ++width) {
    for (const Progress& p :
         {some(0, 0, 0), some(1000, 240, 10), some(39'563'000, 39'563'000, 0), some(7, 0, 7)}) {
      INFO(width);
      if (p.counts.found > 0) CHECK(static_cast<int>(bar_line(p, 1234.5, width).size()) <= width);
    }
  }
}

TEST_CASE("text: a line for each node says how busy it was meanwhile and what waits before it") {
  Plan plan;
  for (const char* name : {"files", "mel", "a name longer than the place for it"}) {
    plan.nodes.emplace_back();
    plan.nodes.back().name = name;
    plan.nodes.back().queue = 16;
    if (plan.nodes.size() > 1) plan.nodes.back().inputs.emplace_back();
  }
  RunSample before, now;
  before.nodes.resize(3);
  now.nodes.resize(3);
  before.nodes[0].time = {.busy = 5, .waiting_input = 5};
  now.nodes[0].time = {.busy = 6, .waiting_input = 8};  // 1 s of 4
  before.nodes[1].time = {.busy = 9, .waiting_core = 1};
  now.nodes[1].time = {.busy = 18, .waiting_core = 2};  // 9 of 10
  now.nodes[1].waiting = 7;
  const auto lines = stage_lines(plan, before, now, 80);
  REQUIRE(lines.size() == 3);
  CHECK(lines[0] == "  files              ####............  25% busy");
  CHECK(lines[1] == "  mel                ##############..  90% busy, 7/16 waiting  <- busiest");
  CHECK(lines[2] == "  a name longer than ................   0% busy, 0/16 waiting");
  for (int width = 0; width < 100; ++width)
    for (const std::string& line : stage_lines(plan, before, now, width)) {
      INFO(width);
      CHECK(static_cast<int>(line.size()) <= width);
    }
  // Without work nothing is marked; and there are no lines before the graph exists.
  for (const std::string& line : stage_lines(plan, now, now, 80))
    CHECK(line.find("busiest") == std::string::npos);
  CHECK(stage_lines(plan, {}, now, 80).empty());
}

TEST_CASE("text: before the files are found nothing is promised") {
  CHECK(bar_line(some(0, 0, 0), 0, 80) == "looking for files, 0:04");
  CHECK(log_line(some(0, 0, 0), 0, 0) == "looking for files, 0:04 so far");
  CHECK(bar_line(some(10, 0, 0), 0, 80).find("-:-- left") != std::string::npos);
}

TEST_CASE("text: when all files are done the output still has to be finished") {
  CHECK(bar_line(some(10, 9, 1), 3, 120).find("finishing") != std::string::npos);
}

TEST_CASE("text: the bar keeps its length while the figures grow") {
  const auto length = [](const std::string& line) { return line.find(']'); };
  CHECK(length(bar_line(some(40'000, 3, 0), 3, 100)) ==
        length(bar_line(some(40'000, 39'000, 900), 10'663, 100)));
}

TEST_CASE("text: a line for a log file has everything") {
  CHECK(log_line(some(1000, 240, 10), 50, 61'000) ==
        "250 of 1,000 files (25%), 10 failed, 0 skipped, 2,400 rows, 3.00 MB read, 50 files/s, "
        "61,000 rows/s, 0:15 left");
}

TEST_CASE("text: a filling pass is no progress of the run proper") {
  Progress p = some(1000, 240, 10);
  p.is_filling = true;
  const std::string bar = bar_line(p, 50, 120, 210e6);
  CHECK(bar.find("]  25%  loading 250/1,000 files  50/s") != std::string::npos);
  CHECK(bar.find("  3.00 MB read, 210 MB/s") != std::string::npos);
  CHECK(bar.find("row") == std::string::npos);
  CHECK(log_line(p, 50, 0) ==
        "loading 250 of 1,000 files (25%), 3.00 MB read, 50 files/s, 0:15 left");
  CHECK(log_line(p, 50, 0, 1.5e6) ==
        "loading 250 of 1,000 files (25%), 3.00 MB read, 1.50 MB/s, 50 files/s, 0:15 left");
}

TEST_CASE("text: the rate is that of the last seconds") {
  RateMeter rate;
  CHECK(rate.per_second() == 0);
  rate.add(2, 20);
  CHECK(rate.per_second() == doctest::Approx(10));
  rate = {};
  for (int second = 0; second <= 100; ++second)
    rate.add(second, static_cast<std::size_t>(second < 50 ? second * 10 : 500 + (second - 50) * 2));
  CHECK(rate.per_second() == doctest::Approx(2));
}

}  // namespace melflow::text_test
