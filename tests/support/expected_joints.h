// The edges that a plan demands of oneTBB's graph, from docs/decisions/0001-graph.md and
// independent of the code: the input of each node, the queue of each branch, and the way past the
// queue where a node has a single successor and both run on the workers.
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
  const auto edge = [&out](const std::string& from, const std::string& to, const char* leads_to) {
    out.push_back(fmt::format("{} -> {} ({})", from, to, leads_to));
  };
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const JointNode& n = nodes[i];
    if (n.on_workers) {
      edge(n.name + ".waiting", n.name + ".places", "limiter_node");
      edge(n.name + ".places", n.name, "multifunction_node");
    }
    for (int u = 0; u < static_cast<int>(nodes.size()); ++u) {
      if (!n.takes(u)) continue;
      const JointNode& up = nodes[static_cast<std::size_t>(u)];
      if (n.on_workers)
        edge(up.name, n.name + ".waiting", "priority_queue_node");
      else
        edge(up.name, n.name, "async_node");
      const auto readers =
          std::count_if(nodes.begin(), nodes.end(), [u](const JointNode& o) { return o.takes(u); });
      if (readers == 1 && up.on_workers && n.on_workers)
        edge(up.name, n.name, "multifunction_node");
    }
  }
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
