// A run as a profiler sees it: a tool that NVTX loads (nvtx_log/) records every range.
#include <doctest/doctest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <vector>

#include <fmt/format.h>

#include "tests/apps/process.h"
#include "tests/apps/sound.h"

namespace melflow::test::nvtx_test {
namespace {

struct Ranges {
  std::map<std::string, std::size_t> pushed, started;  // by node
  std::map<std::string, std::set<std::string>> colors;
  std::set<std::string> domains;
  std::string wrong;  // extra or missing pops and ends; "" when all is well
};

Ranges read_ranges(const std::string& log) {
  Ranges out;
  std::map<std::string, long> open_on_thread;
  std::set<std::string> under_way;
  std::istringstream lines(log);
  std::string what, number, domain, color, node;
  while (lines >> what >> number) {
    if (what == "push" || what == "start") {
      lines >> domain >> color >> node;
      out.domains.insert(domain);
      out.colors[node].insert(color);
    }
    if (what == "push") {
      ++out.pushed[node];
      ++open_on_thread[number];
    } else if (what == "pop") {
      if (--open_on_thread[number] < 0) out.wrong += "pop without push on " + number + "\n";
    } else if (what == "start") {
      ++out.started[node];
      under_way.insert(number);
    } else if (under_way.erase(number) == 0) {
      out.wrong += "end of nothing: " + number + "\n";
    }
  }
  for (const auto& [thread, open] : open_on_thread)
    if (open > 0) out.wrong += "push without pop on " + thread + "\n";
  if (!under_way.empty()) out.wrong += "start without end\n";
  return out;
}

struct Profiled {
  Ranges ranges;
  nlohmann::json stages;
};

Profiled profile(const char* program, const std::string& mel) {
  const TempFolder folder;
  for (int i = 0; i < 12; ++i)
    test::write_clip(folder / fmt::format("clips/{:02}.wav", i), 16000, 0.5,
                     static_cast<unsigned>(i));
  test::write_text(folder / "p.yaml",
                   fmt::format("version: 1\n"
                               "workers: 3\n"
                               "graph:\n"
                               "  files: {{stage: file_list, root: clips}}\n"
                               "  read: {{stage: disk_read, from: files, engine: threads}}\n"
                               "  decode: {{stage: decode, from: read}}\n"
                               "  segment: {{stage: segment, from: decode}}\n"
                               "  batch: {{stage: batch, from: segment, files: 2}}\n"
                               "  mel: {{stage: mel, from: batch, preset: whisper, {}}}\n"
                               "  write: {{stage: npy_write, from: mel, path: out.npy}}\n",
                               mel));
  const Ended e = exits(0, run(folder, {program, "run", "p.yaml", "--json", "-q"},
                               {{"NVTX_INJECTION64_PATH", MELFLOW_NVTX_LOG},
                                {"MELFLOW_NVTX_LOG", folder / "log.txt"}}));
  return {read_ranges(test::read_text(folder / "log.txt")), nlohmann::json::parse(e.out)["stages"]};
}

// Checks that each call of a node has a range, with a colour for each node.
void check_ranges(const Profiled& p, const std::set<std::string>& asynchronous) {
  CHECK(p.ranges.wrong == "");
  CHECK(p.ranges.domains == std::set<std::string>{"melflow"});
  std::set<std::string> colors;
  for (const auto& stage : p.stages) {
    const std::string node = stage["name"];
    CAPTURE(node);
    const std::size_t in = stage["items_in"], out = stage["items_out"];
    const auto count = [&node](const std::map<std::string, std::size_t>& all) {
      const auto it = all.find(node);
      return it == all.end() ? 0 : it->second;
    };
    const std::size_t pushed = count(p.ranges.pushed), started = count(p.ranges.started);
    if (asynchronous.count(node) == 1) {
      CHECK(started == in);
      CHECK(pushed == 0);
    } else if (stage["stage"] == "batch" || stage["stage"] == "cuda_accumulate") {
      // Partial batches are requested at the end.
      CHECK(pushed >= in);
      CHECK(pushed <= in + out);
    } else {
      CHECK(pushed == (in > 0 ? in : out));
      CHECK(started == 0);
    }
    CHECK(pushed + started > 0);
    REQUIRE(p.ranges.colors.count(node) == 1);
    CHECK(p.ranges.colors.at(node).size() == 1);
    colors.insert(*p.ranges.colors.at(node).begin());
  }
  CHECK(colors.size() == p.stages.size());
}

}  // namespace

TEST_CASE("nvtx: a run on the processor shows a range for every item of every node") {
  const Profiled p = profile(MELFLOW_PROGRAM, "backend: cpu");
  CHECK(p.stages.size() == 7);
  check_ranges(p, {});
}

TEST_CASE("nvtx: on a device, batches under way are ranges beside the threads") {
  const Profiled p = profile(MELFLOW_ON_HOST_GPU, "backend: cuda, accumulate: {bytes: 16KiB}");
  CHECK(p.stages.size() == 10);
  CHECK(p.ranges.started.at("mel") >= 3);
  check_ranges(p, {"mel"});
}

}  // namespace melflow::test::nvtx_test
