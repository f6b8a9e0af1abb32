// The edges that a plan demands of oneTBB's graph, from docs/decisions/0001-graph.md and
// independent of the code: one for each edge of the plan.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "pipeline/report/report.h"

namespace melflow::test {

/// A node of the plan; nodes are in topological order.
struct JointNode {
  std::string name;
  int from = -1;  ///< index of its input; -1: the source
  bool on_workers = true;
  std::vector<int> more = {};  ///< further inputs

  [[nodiscard]] bool takes(int node) const {
    return from == node || std::find(more.begin(), more.end(), node) != more.end();
  }
};

/// Returns "from -> to (class)", sorted; an edge that exists twice is listed twice.
inline std::vector<std::string> expected_joints(const std::vector<JointNode>& nodes) {
  std::vector<std::string> out;
  for (const JointNode& n : nodes)
    for (int u = 0; u < static_cast<int>(nodes.size()); ++u)
      if (n.takes(u))
        out.push_back(fmt::format("{} -> {} ({})", nodes[static_cast<std::size_t>(u)].name, n.name,
                                  n.on_workers ? "multifunction_node" : "async_node"));
  std::sort(out.begin(), out.end());
  return out;
}

inline std::vector<std::string> joints_of(const RunReport& report) {
  std::vector<std::string> out;
  for (const Joint& j : report.joints)
    out.push_back(fmt::format("{} -> {} ({})", j.from, j.to, j.leads_to));
  std::sort(out.begin(), out.end());
  return out;
}

}  // namespace melflow::test
