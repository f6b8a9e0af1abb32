// A graph of test stages, written in a few lines, and a run of it.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "pipeline/plan/graph_builder.h"
#include "pipeline/run/runner.h"
#include "tests/pipeline/test_stages.h"

namespace melflow::test {

/// Writes a GraphSpec as YAML would give it. Node number i (from 1) stands in line i of
/// "test.yaml", its name in column 3; its option number k (from 1) has its key in column 10k and
/// its value in column 10k + 5.
class Graph {
 public:
  using Options = std::vector<std::pair<std::string, std::string>>;
  Graph& node(const std::string& name, const std::string& stage, const std::string& from = "",
              Options options = {});
  Graph& memory(std::size_t bytes);
  Graph& workers(int count);
  Graph& max_failures(const std::string& text);
  /// Replaces or adds an option of a node.
  Graph& set(const std::string& node, const std::string& key, const std::string& value);

  GraphSpec spec;

 private:
  std::vector<std::string> names_;
};

/// Numbers through two steps into a sink: files, a, b, out.
Graph chain(int items, Graph::Options sink = {});

/// Numbers of workers that a test is run with.
inline constexpr int kWorkers[] = {1, 2, 3, 8};

/// Builds the plan and joins the world's logs to it.
Plan make_plan(const Graph& graph, World& world);

struct Outcomes {
  RunReport report;
  std::vector<Remark> remarks;
};

/// Runs it and checks what holds for every run: accounts, bounds, times, memory.
Outcomes run(const Graph& graph, World& world);
void check_run(const Outcomes& outcomes, World& world);

/// Of a node, or of the queue before it; throws std::out_of_range where there is none.
const StageReport& stage(const RunReport& report, const std::string& name);
const EdgeReport& edge_to(const RunReport& report, const std::string& name);

}  // namespace melflow::test
