// Builds a graph of test stages in a few lines, and runs it.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pipeline/plan/graph_builder.h"
#include "pipeline/run/runner.h"
#include "tests/pipeline/test_stages.h"

namespace melflow::test {

/// Writes a GraphSpec as if read from YAML. Node number i (from 1) is in line i of "test.yaml",
/// with its name in column 3; its option number k (from 1) has its key in column 10k and its value
/// in column 10k + 5.
class Graph {
 public:
  using Options = std::vector<std::pair<std::string, std::string>>;
  explicit Graph(std::string_view text = "") { nodes(text); }
  /// Adds nodes: "NAME: STAGE [< FROM] [KEY=VALUE ...]", separated by ";". A list is "[a, b]".
  Graph& nodes(std::string_view text);
  Graph& node(const std::string& name, const std::string& stage, const std::string& from = "",
              Options options = {});
  Graph& memory(std::size_t bytes);
  Graph& workers(int count);
  Graph& max_failures(const std::string& text);
  /// Replaces or adds an option of a node.
  Graph& set(const std::string& node, const std::string& key, const std::string& value);

  GraphSpec spec;
};

/// A chain of numbers through two steps into a sink: files, a, b, out.
Graph chain(int items, Graph::Options sink = {});

/// The numbers of workers with which a test is run.
inline constexpr int kWorkers[] = {1, 2, 3, 8};

/// Builds the plan and connects it to the world's logs.
Plan make_plan(const Graph& graph, World& world);

struct Outcomes {
  RunReport report;
  std::vector<Remark> remarks;
};

/// Runs a graph and checks what holds for every run: counts, bounds, times, memory.
Outcomes run(const Graph& graph, World& world);
void check_run(const Outcomes& outcomes, World& world);

/// Finds the report of a node, or of the queue before it; throws std::out_of_range for none.
const StageReport& stage(const RunReport& report, const std::string& name);
const EdgeReport& edge_to(const RunReport& report, const std::string& name);

}  // namespace melflow::test
