#include "pipeline/stage/reach.h"

#include <algorithm>

namespace melflow {

Reach::Reach(const Plan& plan, std::size_t nodes)
    : nodes_(nodes), kept_(plan.services.find<KeptItems>()) {
  const auto inside = [nodes](int i) { return static_cast<std::size_t>(i) < nodes; };
  for (std::size_t i = nodes; i-- > 0;) {
    const PlanNode& n = plan.nodes[i];
    Node& own = nodes_[i];
    own.rank = i;
    std::vector<SinkSet> by_output(n.outputs.size(), 0);
    for (const int to : n.to) {
      if (!inside(to)) continue;
      const SinkSet sinks = of(to).sinks;
      own.sinks |= sinks;
      for (const PlanInput& in : plan.nodes[static_cast<std::size_t>(to)].inputs)
        if (in.node == static_cast<int>(i) && in.output >= 0)
          by_output[static_cast<std::size_t>(in.output)] |= sinks;
    }
    if (std::none_of(n.to.begin(), n.to.end(), inside)) {
      own.rank += nodes;
      own.sinks = SinkSet{1} << sinks_.size();
      sinks_.push_back(n.faces.left_out);
    }
    if (kept_ != nullptr && n.info->traits.kind == StageKind::sink)
      keepers_.push_back({static_cast<int>(i), &kept_->had_by(*n.stage)});
    all_ |= own.sinks;
    for (const SinkSet mine : by_output) own.outside.push_back(own.sinks & ~mine);
    if (n.fails_branch) own.lost_by_error = own.sinks;
    own.may_lose = own.lost_by_error;
    for (const int to : n.to)
      if (inside(to)) own.may_lose |= of(to).may_lose;
  }
  find_trunk(plan);
}

void Reach::find_trunk(const Plan& plan) {
  std::vector<int> next{0};
  while (next.size() == 1 && static_cast<std::size_t>(next.front()) < nodes_.size()) {
    const auto at = static_cast<std::size_t>(next.front());
    nodes_[at].is_in_trunk = true;
    next = plan.nodes[at].to;
  }
}

void Reach::keep(Stream& stream) const {
  for (const Keeper& k : keepers_) {
    if (KeptItems::contains(*k.items, stream.index())) stream.keep(k.stage);
  }
}

Reach Reach::plain(int sinks, std::size_t stages) {
  Reach out;
  out.all_ = (SinkSet{1} << sinks) - 1;
  out.nodes_.resize(stages);
  for (std::size_t i = 0; i < stages; ++i) {
    out.nodes_[i].sinks = out.all_;
    out.nodes_[i].rank = i;
  }
  out.sinks_.assign(static_cast<std::size_t>(sinks), nullptr);
  for (std::size_t i = 0; i < out.sinks_.size(); ++i)
    out.nodes_[stages - out.sinks_.size() + i].sinks = SinkSet{1} << i;
  return out;
}

}  // namespace melflow
