#include "pipeline/plan/plan_reach.h"

#include <algorithm>
#include <utility>

namespace melflow {
namespace {

void find_trunk(const Plan& plan, std::vector<Reach::Node>& nodes) {
  std::vector<int> next{0};
  while (next.size() == 1 && static_cast<std::size_t>(next.front()) < nodes.size()) {
    const auto at = static_cast<std::size_t>(next.front());
    nodes[at].is_in_trunk = true;
    next = plan.nodes[at].to;
  }
}

}  // namespace

Reach plan_reach(const Plan& plan, std::size_t nodes) {
  std::vector<Reach::Node> out(nodes);
  std::vector<NotesLeftOut*> sinks;
  std::vector<Reach::Keeper> keepers;
  auto kept = plan.services.find<KeptItems>();
  const auto inside = [nodes](int i) { return static_cast<std::size_t>(i) < nodes; };
  for (std::size_t i = nodes; i-- > 0;) {
    const PlanNode& n = plan.nodes[i];
    Reach::Node& own = out[i];
    own.rank = i;
    std::vector<SinkSet> by_output(n.outputs.size(), 0);
    for (const int to : n.to) {
      if (!inside(to)) continue;
      const Reach::Node& next = out[static_cast<std::size_t>(to)];
      own.sinks |= next.sinks;
      for (const PlanInput& in : plan.nodes[static_cast<std::size_t>(to)].inputs)
        if (in.node == static_cast<int>(i) && in.output >= 0)
          by_output[static_cast<std::size_t>(in.output)] |= next.sinks;
    }
    if (std::none_of(n.to.begin(), n.to.end(), inside)) {
      own.rank += nodes;
      own.sinks = SinkSet{1} << sinks.size();
      sinks.push_back(n.faces.left_out);
    }
    if (kept != nullptr && n.info->traits.kind == StageKind::sink)
      keepers.push_back({static_cast<int>(i), &kept->had_by(*n.stage)});
    for (const SinkSet mine : by_output) own.outside.push_back(own.sinks & ~mine);
    if (n.fails_branch) own.lost_by_error = own.sinks;
    own.may_lose = own.lost_by_error;
    for (const int to : n.to)
      if (inside(to)) own.may_lose |= out[static_cast<std::size_t>(to)].may_lose;
  }
  find_trunk(plan, out);
  return {std::move(out), std::move(sinks), std::move(keepers), std::move(kept)};
}

}  // namespace melflow
